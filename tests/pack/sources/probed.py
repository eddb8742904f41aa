"""Asks the library what a source holds."""

import json
import pathlib
import subprocess
import tempfile
import unittest

PROBE = []


class Input:
    def __init__(self, line):
        raw = {name: bytes.fromhex(line[name + "_hex"]) for name in ("key", "label", "metadata", "content", "described")}
        self.key = raw["key"].decode("utf-8", "surrogateescape")
        self.kind = line["label_kind"]
        self.label = {"integer": lambda: line["label_number"], "class": lambda: raw["label"].decode("utf-8", "surrogateescape")}.get(
            self.kind, lambda: json.loads(raw["label"]))()
        self.label_text = raw["label"].decode("utf-8", "surrogateescape")
        self.metadata_text = raw["metadata"].decode()
        self.content, self.described = raw["content"], raw["described"].decode("utf-8", "surrogateescape")
        self.sequence, self.bad, self.error, self.as_planned = line["sequence"], line["bad"], line["error"], line["as_planned"]

    @property
    def metadata(self):
        return json.loads(self.metadata_text) if self.metadata_text else None


class Found:
    """What a scan found, in the order of the source (folders: by key), and what reading gave."""

    def __init__(self, text):
        *lines, last = [json.loads(line) for line in text.splitlines()]
        self.inputs = sorted((Input(line) for line in lines), key=lambda i: (i.sequence, i.key.encode("utf-8", "surrogateescape")))
        self.ignored, self.warnings = last["ignored"], last["warnings"]
        self.classes = [bytes.fromhex(name).decode("utf-8", "surrogateescape") for name in last.get("classes", [])]

    def keys(self):
        return [i.key for i in self.inputs]

    def labels(self):
        return [i.label for i in self.inputs]

    def kinds(self):
        return {i.kind for i in self.inputs}


class SourceCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def put(self, name, content=b""):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def probe(self, kind, path, *more):
        done = subprocess.run([PROBE[0], kind, path, *more], capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = Found(done.stdout.decode())
        if "--change" not in more:
            for one in found.inputs:
                self.assertTrue(one.as_planned, one.key)
        return found

    def refused(self, kind, path, *words, more=()):
        done = subprocess.run([PROBE[0], kind, path, *more], capture_output=True, timeout=300)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 3, text)
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in (path.name, *words):
            self.assertIn(word, text)
        return text
