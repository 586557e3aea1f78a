"""Handing in runs over HTTP, and reading what became of them."""

def test_a_run_is_accepted_scored_and_ranked(service, track):
    answer = service.submit(track, params={"name": "first.run"})
    assert answer.status_code == 202
    submission = answer.json()
    assert answer.headers["location"] == f"/v1/submissions/{submission['id']}"
    assert submission["state"] == "queued"
    service.work()
    print(service.get("participant", answer.headers["location"]))
    print(service.get("participant", submission["links"]["leaderboard"]))
    assert 0
