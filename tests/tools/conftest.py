import pytest


@pytest.fixture
def read(tmp_path):
    """A table of one column, or of several, and its notes."""

    def opened(columns, separator=",", **options):
        columns = columns if isinstance(columns, dict) else {"a": columns}
        rows = zip(*columns.values(), strict=True)
        quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in rows]
        lines = [separator.join([*columns, "end"]), *(separator.join([*q, "z"]) for q in quoted)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        from gnomon.tools.tables import open_table

        notes = []
        return open_table(tmp_path / "t.csv", note=notes.append, **options), notes

    return opened
