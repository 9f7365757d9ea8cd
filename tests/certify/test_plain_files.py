"""Only plain files are read, once, and no more than was agreed; nothing waits for ever."""

import os
import socket

import pytest

from dpsr.certify.folder import UnreadableError, names_in, read_plain


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 100_000])
def test_a_plain_file_is_read_whole(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    assert read_plain(tmp_path / "f", 100_000) == content
    assert read_plain(tmp_path / "f", 100_000, stated=len(content)) == content


def test_what_is_read_piece_by_piece_is_whole_too(tmp_path, monkeypatch):
    monkeypatch.setattr("dpsr.certify.folder._AT_ONCE", 7)
    (tmp_path / "f").write_bytes(bytes(range(256)))
    assert read_plain(tmp_path / "f", 256) == bytes(range(256))


def a_pipe(path):
    os.mkfifo(path)


def a_socket(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.close()


KINDS = {
    "a pipe": (a_pipe, "not a plain file"),
    "a folder": (lambda path: path.mkdir(), "not a plain file"),
    "a link to a file": (lambda path: path.symlink_to(__file__), "not a plain file"),
    "a link to zeros without end": (lambda path: path.symlink_to("/dev/zero"), "not a plain file"),
    "a link to nowhere": (lambda path: path.symlink_to("nowhere"), "not a plain file"),
    "a link to itself": (lambda path: path.symlink_to(path), "not a plain file"),
    "a socket": (a_socket, "cannot be read"),
    "nothing": (lambda path: None, "is missing"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path, kind):
    make, words = KINDS[kind]
    make(tmp_path / "f")
    with pytest.raises(UnreadableError, match=words):
        read_plain(tmp_path / "f", 100)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_refused(device):
    from pathlib import Path

    with pytest.raises(UnreadableError, match=r"not a plain file|cannot be read"):
        read_plain(Path(device), 100)


def test_a_file_larger_than_agreed_is_not_read(tmp_path):
    with (tmp_path / "f").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(UnreadableError, match="1,099,511,627,776 bytes, and at most 100 are read"):
        read_plain(tmp_path / "f", 100)
    with pytest.raises(UnreadableError, match="and 7 are stated"):
        read_plain(tmp_path / "f", 1 << 50, stated=7)


def test_a_file_that_changes_under_the_reader_is_not_the_one_that_was_looked_at(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"x" * 100)
    real = os.read

    def growing(handle, n):
        with (tmp_path / "f").open("ab") as file:
            file.write(b"y")
        return real(handle, n)

    monkeypatch.setattr(os, "read", growing)
    with pytest.raises(UnreadableError, match="changed while it was read"):
        read_plain(tmp_path / "f", 1000)


def test_a_name_without_an_end_or_with_a_null_is_a_refusal(tmp_path):
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_plain(tmp_path / ("x" * 5000), 10)
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_plain(tmp_path / "a\0b", 10)


def test_the_list_of_a_crowded_folder_ends(tmp_path):
    for number in range(1_500):
        (tmp_path / str(number)).touch()
    assert 1_000 < len(names_in(tmp_path)) < 1_500
