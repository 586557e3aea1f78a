"""Lines of text files, with findings about bytes that are not text."""

from cupel_measures.findings import Finding, Findings, declare

LINE_ENDS = declare(
    "qrels-line-ends",
    "error",
    "a line contains a carriage return without a newline",
    "end lines with LF or CR LF",
)


def text_lines(data: bytes, name: str, code: str, findings: Findings) -> list[bytes]:
    """Return the lines of a text file, without a byte order mark.

    Report lines that are not text (as `code`) or contain a lone carriage return (as qrels-line-ends). Such
    lines are returned as empty lines.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        findings.add(Finding(code=code, message="the file is UTF-16", file=name, line=1, column=1))
        return []
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    try:
        data.decode()
        if b"\0" not in data and data.count(b"\r") == data.count(b"\r\n"):
            return lines
    except UnicodeDecodeError:
        pass
    for index, line in enumerate(lines):
        not_text = _end_of_text(line)
        kind = code if not_text is not None else LINE_ENDS
        place = not_text if not_text is not None else line.find(b"\r", 0, len(line) - 1)
        if place >= 0 and findings.room(kind):
            column, sample = len(line[:place].decode()) + 1, ascii(line[:60])[2:-1]
            message = _byte_problem(line[place])
            findings.add(
                Finding(code=kind, message=message, file=name, line=index + 1, column=column, sample=sample)
            )
        elif place >= 0:
            findings.count(kind)
        lines[index] = b"" if place >= 0 else line
    return lines


def _byte_problem(byte: int) -> str:
    """Return an error message about a byte that is not text."""
    names = {0: "NUL byte", 13: "carriage return without a newline"}
    return names.get(byte, f"byte 0x{byte:02x} is not UTF-8")


def _end_of_text(line: bytes) -> int | None:
    """Return the offset of the first byte that is not text, None if all are."""
    try:
        line.decode()
        end = len(line)
    except UnicodeDecodeError as problem:
        end = problem.start
    nul = line.find(b"\0", 0, end)
    return nul if nul >= 0 else end if end < len(line) else None
