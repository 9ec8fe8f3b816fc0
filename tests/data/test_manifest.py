"""The card of a data file (FILE.json) records its licence. A damaged card or manifest (bgt-data.json) is an error."""

from pathlib import Path

import pytest

from bgt_core.data import manifest
from bgt_core.data.clean import clean
from bgt_core.errors import DataError

LANGS = ("en", "fr")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A table written by `clean`, which has written the table's card into the same folder."""
    (tmp_path / "in.tsv").write_text("one cat\tun chat\ntwo dogs\tdeux chiens\n", "utf-8")
    clean([tmp_path / "in.tsv"], LANGS, tmp_path / "data" / "out.tsv", licence="CC0")
    return tmp_path / "data" / "out.tsv"


def test_the_licence_is_that_of_the_card(made: Path) -> None:
    assert manifest.licence_of(made) == "CC0"
    clean([made, made.parents[1] / "in.tsv"], LANGS, made.with_name("both.tsv"))
    assert manifest.licence_of(made.with_name("both.tsv")) == "CC0; not recorded"


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": "bgt-data/9", "sources": {}, "files": {}}'])
def test_a_damaged_manifest_or_card_is_said(content: str, made: Path) -> None:
    made.with_name("out.tsv.json").write_text(content)
    with pytest.raises(DataError, match=r"out\.tsv\.json: damaged"):
        manifest.licence_of(made)
    made.with_name("out.tsv.json").unlink()
    (made.parent / manifest.NAME).write_text(content)
    with pytest.raises(DataError, match=r"bgt-data\.json: damaged"):
        manifest.licence_of(made)
