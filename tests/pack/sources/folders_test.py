"""Class folders as a source, and which kind of source a path is."""

import os
import socket
import sys
import tarfile
import unittest
import zipfile

import probed
from probed import SourceCase


class Folders(SourceCase):
    def test_every_picture_is_found_with_its_bytes_and_the_name_of_its_top_folder(self):
        content = {}
        for number in range(300):
            key = f"{'abc'[number % 3]}/{'deep/er/' if number % 5 == 0 else ''}{number}.{('jpg', 'PNG', 'tiff', 'JpEg')[number % 4]}"
            content[key] = os.urandom(number * 7)
            self.put("tree/" + key, content[key])
        found = self.probe("auto", self.work / "tree")
        self.assertEqual({i.key: i.content for i in found.inputs}, content)
        self.assertEqual({i.key: i.label for i in found.inputs}, {key: key.split("/")[0] for key in content})
        self.assertEqual(found.kinds(), {"class"})
        self.assertEqual(found.classes, ["a", "b", "c"])
        self.assertEqual(found.inputs[0].described, f"{self.work}/tree/{found.inputs[0].key}")

    def test_a_folder_of_more_names_than_are_kept_at_a_time_is_found_whole(self):
        names = {f"a/{number:05}.bmp" for number in range(20_000)}
        (self.work / "tree/a").mkdir(parents=True)
        for name in names:
            os.close(os.open(self.work / "tree" / name, os.O_CREAT | os.O_WRONLY))
        found = self.probe("folder", self.work / "tree")
        self.assertEqual(found.keys(), sorted(names))

    def test_what_is_hidden_or_no_candidate_is_counted_and_passed_over(self):
        for name in ("a/1.jpg", "a/.hidden.jpg", ".b/2.jpg", "a/.c/3.jpg", "a/Thumbs.db", "a/notes.txt", "a/jpg", "a/x.jpg.zip"):
            self.put("tree/" + name, b"x")
        os.mkfifo(self.work / "tree/a/pipe.jpg")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(self.work / "tree/a/socket.png"))
            found = self.probe("folder", self.work / "tree")
        self.assertEqual(found.keys(), ["a/1.jpg"])
        self.assertEqual(found.classes, ["a"])
        self.assertEqual(found.ignored, 9)

    def test_links_are_followed_and_no_folder_is_entered_twice_on_the_way_down(self):
        self.put("tree/a/1.jpg", b"one")
        self.put("elsewhere/z.jpg", b"three")
        os.symlink(self.work / "tree", self.work / "tree/a/loop")
        os.symlink(".", self.work / "tree/self")
        os.symlink(self.work / "elsewhere", self.work / "tree/b")
        os.symlink("1.jpg", self.work / "tree/a/linked.jpg")
        found = self.probe("folder", self.work / "tree")
        self.assertEqual({i.key: i.content for i in found.inputs}, {"a/1.jpg": b"one", "a/linked.jpg": b"one", "b/z.jpg": b"three"})
        self.assertEqual(found.classes, ["a", "b"])

    def test_links_that_lead_nowhere_are_bad_where_they_are_called_as_pictures(self):
        self.put("tree/a/1.jpg", b"one")
        os.symlink("nowhere", self.work / "tree/a/gone.jpg")
        os.symlink("itself.jpg", self.work / "tree/a/itself.jpg")
        os.symlink("nowhere", self.work / "tree/a/gone.txt")
        found = self.probe("folder", self.work / "tree")
        self.assertEqual({i.key: i.bad for i in found.inputs},
                         {"a/1.jpg": "", "a/gone.jpg": "dangling link: it leads to no file", "a/itself.jpg": "the link leads to itself"})

    def test_a_class_without_pictures_is_announced(self):
        self.put("tree/a/1.jpg")
        self.put("tree/c/1.jpg")
        (self.work / "tree/b_empty/deeper").mkdir(parents=True)
        self.assertEqual(self.probe("folder", self.work / "tree").classes, ["a", "b_empty", "c"])

    def test_pictures_in_no_class_folder_are_left_out_with_a_warning(self):
        for name in ("a/1.jpg", "y.jpg", "stray.jpg"):
            self.put("tree/" + name)
        found = self.probe("folder", self.work / "tree")
        self.assertEqual(found.keys(), ["a/1.jpg"])
        self.assertEqual(found.ignored, 2)
        self.assertEqual(len(found.warnings), 1)
        self.assertIn("2 pictures lie in no class folder and are left out (stray.jpg, ...)", found.warnings[0])

    def test_names_are_bytes(self):
        os.makedirs(os.fsencode(self.work) + b"/tree/d\xe9j\xe0")
        for name in (b"\xff\n.jpg", b" -x %s.png"):
            with open(os.fsencode(self.work) + b"/tree/d\xe9j\xe0/" + name, "wb") as file:
                file.write(name)
        found = self.probe("folder", self.work / "tree")
        self.assertEqual([os.fsencode(key) for key in found.keys()], [b"d\xe9j\xe0/ -x %s.png", b"d\xe9j\xe0/\xff\n.jpg"])
        self.assertEqual(os.fsencode(found.classes[0]), b"d\xe9j\xe0")

    def test_a_folder_that_may_not_be_read_stops_the_scan_with_its_name(self):
        self.put("tree/a/1.jpg")
        (self.work / "tree/b").mkdir()
        os.chmod(self.work / "tree/b", 0)
        if os.access(self.work / "tree/b", os.R_OK):
            self.skipTest("this user may read everything")
        self.refused("folder", self.work / "tree", "tree/b", "Permission denied")

    def test_a_file_that_grew_shrank_or_vanished_since_the_scan_is_refused_when_it_is_read(self):
        for change, words in ((b"longer than before", "changed"), (b"s", "changed"), (None, "vanished")):
            for tree in ("tree", "new"):
                self.put(f"{tree}/a/1.jpg", b"as it was")
            if change is None:
                (self.work / "new/a/1.jpg").unlink()
            else:
                self.put("new/a/1.jpg", change)
            # The new tree takes the place of the old one between scan and reading.
            os.symlink(self.work / "tree", self.work / "given")
            os.symlink(self.work / "new", self.work / "then")
            found = self.probe("folder", self.work / "given", "--change", self.work / "then")
            self.assertFalse(found.inputs[0].as_planned)
            self.assertIn(words, found.inputs[0].error)
            os.unlink(self.work / "given")


class Kinds(SourceCase):
    def test_files_are_told_by_their_names_and_else_by_their_first_bytes(self):
        self.put("1.jpg", b"one")
        self.put("list.csv", b"path,label\n1.jpg,7\n")
        self.put("list.txt", b"label,path\n7,1.jpg\n")
        self.put("list.JSONL", b'{"path": "1.jpg", "label": 7}\n')
        self.put("lines", b'\n {"path": "1.jpg", "label": 7}\n')
        for name in ("list.csv", "list.txt", "list.JSONL", "lines"):
            found = self.probe("auto", self.work / name)
            self.assertEqual([(i.key, i.label, i.content) for i in found.inputs], [("1.jpg", 7, b"one")], name)
        self.put("7.cls", b"7")
        for name, mode in (("x.tar", "w"), ("archive", "w"), ("x.tgz", "w:gz"), ("zipped", "w:gz")):
            with tarfile.open(self.work / name, mode) as tar:
                tar.add(self.work / "1.jpg", "s.jpg")
                tar.add(self.work / "7.cls", "s.cls")
            self.assertEqual(self.probe("auto", self.work / name).labels(), [7], name)
        for name in ("x.zip", "other"):
            with zipfile.ZipFile(self.work / name, "w") as archive:
                archive.write(self.work / "1.jpg", "cat/1.jpg")
            self.assertEqual(self.probe("auto", self.work / name).labels(), ["cat"], name)

    def test_what_is_no_source_is_refused_with_the_kinds_there_are(self):
        self.refused("auto", self.put("notes.txt", b"hello"), "no known kind", ".csv", ".tar", "--from")
        self.refused("auto", self.put("empty", b""), "no known kind")
        self.refused("auto", self.put("cat.jpg", b"\xff\xd8\xff"), "is a picture")
        self.refused("auto", self.work / "nowhere", "No such file")
        os.mkfifo(self.work / "pipe.csv")
        self.refused("auto", self.work / "pipe.csv", "regular file")

    def test_a_folder_of_archives_or_lists_is_refused_with_the_advice_to_name_them(self):
        for number in (1, 0):
            self.put(f"shards/train-{number}.tar", b"x")
        self.put("shards/README", b"x")
        self.refused("auto", self.work / "shards", "2 archives or lists (train-0.tar, ...)", "name the files themselves")

    def test_what_is_asked_for_must_fit_the_path(self):
        self.put("tree/a/1.jpg")
        self.refused("csv", self.work / "tree", "is a folder")
        self.refused("dataset", self.work / "tree", "no dataset")
        self.refused("folder", self.put("list.csv", b"path,label\n"), "is not a folder")


if __name__ == "__main__":
    probed.PROBE.append(sys.argv.pop(1))
    unittest.main()
