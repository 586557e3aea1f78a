"""The OpenAPI description, and the routes that describe the service."""

import json
import logging

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from openapi_spec_validator.validation import OpenAPIV31SpecValidator

from cupel_contract.error_codes import ERROR_CODES
from cupel_gateway.request_middleware import JsonLines

UNUSED_OVER_HTTP = {
    "path-unknown",  # belongs to no operation
    "method-not-allowed",
    "field-missing",  # an item of request-invalid
    "field-unknown",
    "field-invalid",
    "job-state-unknown",
}


def operations(service) -> list[tuple[str, str, dict]]:
    return [
        (path, method, operation)
        for path, methods in service.openapi["paths"].items()
        for method, operation in methods.items()
    ]


def test_description_is_valid_openapi_3_1(service) -> None:
    assert service.openapi["openapi"].startswith("3.1")
    validate(service.openapi, cls=OpenAPIV31SpecValidator)


def test_operations_have_unique_ids_descriptions_and_tags(service) -> None:
    names = [operation["operationId"] for _, _, operation in operations(service)]
    assert len(set(names)) == len(names)
    assert all(operation["description"] and operation["tags"] for _, _, operation in operations(service))


def test_every_property_of_every_schema_has_a_description(service) -> None:
    properties = {
        f"{name}.{field}": declared
        for name, schema in service.openapi["components"]["schemas"].items()
        for field, declared in schema.get("properties", {}).items()
    }
    assert len(properties) > 300
    assert [name for name, declared in properties.items() if not declared.get("description")] == []


def test_every_problem_has_a_valid_example(service) -> None:
    schemas = service.openapi["components"]["schemas"]
    root = {"$ref": "#/components/schemas/ProblemDocument", "components": {"schemas": schemas}}
    validator = Draft202012Validator(root)
    examples = 0
    for _, _, operation in operations(service):
        for status, response in operation["responses"].items():
            if int(status) < 400:
                continue
            for code, example in response["content"]["application/problem+json"]["examples"].items():
                validator.validate(example["value"])
                assert (example["value"]["status"], example["value"]["code"]) == (int(status), code)
                examples += 1
    assert examples > 100


def test_every_successful_response_has_a_valid_example(service) -> None:
    schemas = service.openapi["components"]["schemas"]
    for path, method, operation in operations(service):
        for status, response in operation["responses"].items():
            if not status.startswith("2") or status == "204":
                continue
            assert response["content"], (path, method, status)
            for content in response["content"].values():
                root = content.get("schema", {}) | {"components": {"schemas": schemas}}
                Draft202012Validator(root).validate(content["example"])


def test_every_json_request_body_has_a_valid_example(service) -> None:
    schemas = service.openapi["components"]["schemas"]
    bodies = [operation.get("requestBody", {}) for _, _, operation in operations(service)]
    contents = [
        body["content"]["application/json"]
        for body in bodies
        if "application/json" in body.get("content", {})
    ]
    assert len(contents) >= 8
    for content in contents:
        root = content["schema"] | {"components": {"schemas": schemas}}
        Draft202012Validator(root).validate(content["example"])


def test_description_enumerates_states_scopes_kinds_and_profiles(service) -> None:
    schemas = service.openapi["components"]["schemas"]
    assert "waiting" in schemas["SubmissionState"]["enum"]
    assert schemas["TokenScope"]["enum"] == ["participant", "organiser", "admin"]
    assert schemas["TokenCreate"]["properties"]["scope"]["enum"] == ["participant", "organiser", "admin"]
    for schema in ("TrackResource", "TrackCreate", "ScoreResource", "LeaderboardResource"):
        assert "trec_eval-9" in schemas[schema]["properties"]["profile"]["enum"]
    for schema in ("AuditRequest", "AuditResource", "AlertCreate"):
        assert "downsampling" in schemas[schema]["properties"]["kind"]["enum"]
    parameters = {
        (operation["operationId"], parameter["name"]): parameter["schema"]
        for _, _, operation in operations(service)
        for parameter in operation.get("parameters", ())
    }
    assert parameters["list_jobs", "state"]["anyOf"][0]["enum"] == ["queued", "running", "done", "dead"]
    assert "downsampling" in parameters["list_audits", "kind"]["anyOf"][0]["enum"]


def test_every_error_code_is_listed_for_some_operation(service) -> None:
    listed = {
        code
        for _, _, operation in operations(service)
        for status, response in operation["responses"].items()
        if int(status) >= 400
        for code in response["content"]["application/problem+json"]["examples"]
    }
    assert ERROR_CODES.keys() - listed <= UNUSED_OVER_HTTP


def test_only_public_operations_need_no_token(service) -> None:
    public = {
        operation["operationId"] for _, _, operation in operations(service) if "security" not in operation
    }
    assert public == {
        "show_service", "list_errors", "list_measures", "read_measure", "healthz", "readyz", "metrics",
        "list_audit_kinds",
    }  # fmt: skip


def test_operations_list_only_statuses_that_can_occur(service) -> None:
    for path, method, operation in operations(service):
        assert ("401" in operation["responses"]) == ("security" in operation), (path, method)
        assert ("413" in operation["responses"]) == ("requestBody" in operation), (path, method)
        assert ("408" in operation["responses"]) == ("requestBody" in operation), (path, method)


def test_response_headers_are_listed(service, track: str) -> None:
    made = service.accepted_submission(track)["id"]
    answers = {
        ("get", "/v1/tracks/{track}"): service.request("organiser", "GET", f"/v1/tracks/{track}"),
        ("patch", "/v1/tracks/{track}"): service.request(
            "organiser", "PATCH", f"/v1/tracks/{track}", json={"title": "x"}
        ),
        ("get", "/v1/tracks/{track}/submissions"): service.request(
            "participant", "GET", f"/v1/tracks/{track}/submissions?limit=1"
        ),
        ("post", "/v1/tracks/{track}/submissions"): service.submit(track),
        ("post", "/v1/tracks/{track}/qrels"): service.upload(track),
        ("get", "/v1/submissions/{submission}"): service.request(
            "participant", "GET", f"/v1/submissions/{made}"
        ),
    }
    for (method, path), answer in answers.items():
        listed = service.openapi["paths"][path][method]["responses"][str(answer.status_code)]
        sent = {"etag", "location", "link"} & set(answer.headers)
        assert sent <= {name.lower() for name in listed.get("headers", ())}, (method, path)
    for _, _, operation in operations(service):
        conditional = any(
            parameter["name"] == "if-none-match" for parameter in operation.get("parameters", ())
        )
        assert ("304" in operation["responses"]) == conditional
        assert all(
            "Retry-After" in operation["responses"][code]["headers"]
            for code in {"429", "503"} & operation["responses"].keys()
        )


def test_uploads_describe_their_bodies(service) -> None:
    paths = service.openapi["paths"]
    assert (
        "application/octet-stream"
        in paths["/v1/tracks/{track}/submissions"]["post"]["requestBody"]["content"]
    )
    assert "multipart/form-data" in paths["/v1/tracks/{track}/qrels"]["post"]["requestBody"]["content"]


MEASURES = ("alpha_nDCG", "TOMA", "SBTO", "nDCG")


def test_measures_are_listed_and_explained(service) -> None:
    listed = {item["name"]: item for item in service.get("stranger", "/v1/measures")["items"]}
    assert {"AP", "nDCG", "TOMA"} <= listed.keys()
    assert listed["nDCG"]["at"] == "cutoff"
    description = [
        [listed[name][of] for of in ("subtopics", "combines", "exact", "scale")] for name in MEASURES
    ]
    assert description == [
        [True, False, False, "neither"],
        [False, True, True, "depends"],
        [False, False, True, "interval"],
        [False, False, False, "neither"],
    ]
    read = service.get("stranger", "/v1/measures/RBP(p=1%2F3)@10")
    assert read["text"] == "RBP(p=1/3)@10"
    assert service.get("stranger", "/v1/measures/ndcg_cut_10")["text"] == "nDCG@10"


@pytest.mark.parametrize("text", ["nDGC@10", "P", "AP(", "x" * 5000, "%00", "%F0%9F%A7%AA"])
def test_invalid_measure_text_is_refused(service, text: str) -> None:
    answer = service.http.get(f"/v1/measures/{text}")
    assert answer.status_code == 422
    assert answer.json()["code"] in {"measure-invalid", "request-invalid"}


def test_service_reports_its_limits_and_profiles(service) -> None:
    description = service.get("stranger", "/v1")
    assert description["limits"]["upload_bytes"] == service.system.settings.upload_megabytes << 20
    assert "trec_eval-9" in description["profiles"]


def test_log_line_is_json_with_route_status_and_team(service, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="cupel.gateway"):
        answer = service.request("participant", "GET", "/v1/tracks/none\u2028here")
        service.get("participant", "/v1/me")  # the log has the first request by then
    line = JsonLines().format(
        next(
            item
            for item in caplog.records
            if getattr(item, "request_id", "") == answer.headers["x-request-id"]
        )
    )
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["route"], entry["status"], entry["team"]) == ("/v1/tracks/{track}", 404, "alice")
    assert service.tokens["participant"] not in line
