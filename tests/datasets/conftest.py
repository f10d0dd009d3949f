"""The real files, where there are any, and files made up for a test that the registry then takes for real."""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from rflvm.datasets.registry import SOURCES, File


@pytest.fixture
def real():
    """Call a loader on the folder that RFLVM_DATA names, or on ``shared/data`` beside the repository."""
    home = Path(os.environ.get("RFLVM_DATA") or Path(__file__).parents[3] / "shared" / "data")

    def load(loader, **options):
        try:
            return loader(data_home=home, **options)
        except FileNotFoundError as error:
            pytest.skip(str(error).split(": ")[0])

    return load


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Write files of a data set to a folder, with their digests in the registry; the folder is returned."""

    def write(dataset, files, **about):
        monkeypatch.delenv("RFLVM_DATA", raising=False)
        entries = {}
        for name, content in files.items():
            (tmp_path / dataset).mkdir(exist_ok=True)
            (tmp_path / dataset / name).write_bytes(content)
            entries[name] = File(hashlib.sha256(content).hexdigest(), len(content), **about)
        monkeypatch.setitem(SOURCES, dataset, SOURCES[dataset]._replace(files=entries))
        return tmp_path

    return write


@pytest.fixture
def workbook():
    """Make an xlsx file of the XML of its rows and of its shared strings."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'

    def make(sheet, strings):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("xl/sharedStrings.xml", f"<sst {main}>{strings}</sst>")
            archive.writestr(
                "xl/worksheets/sheet1.xml", f"<worksheet {main}><sheetData>{sheet}</sheetData></worksheet>"
            )
        return buffer.getvalue()

    return make
