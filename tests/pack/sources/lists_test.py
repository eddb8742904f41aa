"""CSV and JSON lines as sources, against Python's csv and json modules."""

import csv
import io
import json
import os
import random
import struct
import sys
import unittest

import probed
from probed import SourceCase


class Csv(SourceCase):
    def write(self, rows, header=("path", "label"), name="list.csv", **dialect):
        text = io.StringIO(newline="")
        csv.writer(text, **dialect).writerows([header, *rows])
        return self.put(name, text.getvalue().encode("utf-8", "surrogateescape"))

    def make_files(self, count):
        for number in range(count):
            self.put(f"{number}.jpg", b"content of %d" % number)

    def test_paths_labels_and_contents_are_those_of_the_rows(self):
        self.make_files(5)
        found = self.probe("csv", self.write([(f"{n}.jpg", n * 10 - 7) for n in range(5)]))
        self.assertEqual([(i.key, i.label, i.content, i.metadata) for i in found.inputs],
                         [(f"{n}.jpg", n * 10 - 7, b"content of %d" % n, None) for n in range(5)])
        self.assertEqual(found.kinds(), {"integer"})
        self.assertIn("list.csv: line 2: 0.jpg", found.inputs[0].described)

    def test_random_quoted_fields_are_read_as_pythons_csv_module_reads_them(self):
        self.make_files(1)
        draw = random.Random(1)
        letters = 'ab ,;"\'\t\n\r\\é漢\U0001f600{}[]'
        text = lambda: "".join(draw.choice(letters) for _ in range(draw.randrange(12)))
        for round_number in range(20):
            header = ["path", "label", *[f"c{n}" + text() for n in range(draw.randrange(6))]]
            draw.shuffle(header)
            rows = []
            for number in range(40):
                row = {name: text() for name in header}
                # No file need be there: such inputs are found all the same, as bad ones.
                rows.append([{"path": f"{number}" + row["path"], "label": "x" + row["label"]}.get(name, row[name]) for name in header])
            # Python quotes no line end but the one it writes where it is not told to.
            end = draw.choice(["\n", "\r\n", "\r"])
            quoting = csv.QUOTE_ALL if end != "\r\n" or draw.random() < 0.3 else csv.QUOTE_MINIMAL
            path = self.write(rows, header, lineterminator=end, quoting=quoting)
            with open(path, newline="", encoding="utf-8") as file:
                truth = list(csv.DictReader(file))
            self.assertEqual(len(truth), 40)
            found = self.probe("csv", path)
            for one, row in zip(found.inputs, truth, strict=True):
                self.assertEqual((one.key, one.label), (row.pop("path"), row.pop("label")))
                self.assertEqual(list((one.metadata or {}).items()), list(row.items()))

    def test_every_cut_of_a_file_into_reads_gives_the_same_rows(self):
        # Reads are of a fixed size: fields that end anywhere around its multiples meet each way of being cut.
        self.make_files(1)
        for shift in range(0, 40):
            filler = "x" * (32768 - 40 + shift)
            rows = [("0.jpg", 1, filler), ("a\r\nb.jpg", 2, 'q"\r\n'), ("c.jpg", 3, "")]
            found = self.probe("csv", self.write(rows, ("path", "label", "more")))
            self.assertEqual([(i.key, i.label, i.metadata["more"]) for i in found.inputs], rows)
            self.assertEqual([i.sequence for i in found.inputs], [2, 3, 6])

    def test_a_byte_order_mark_blank_lines_and_a_missing_last_line_end_are_allowed(self):
        self.make_files(3)
        path = self.put("list.csv", b"\xef\xbb\xbf\r\n\r\npath,label\r\n\r\n0.jpg,4\r\n\n\r1.jpg,5\n\n2.jpg,6")
        found = self.probe("csv", path)
        self.assertEqual([(i.key, i.label, i.sequence) for i in found.inputs], [("0.jpg", 4, 5), ("1.jpg", 5, 8), ("2.jpg", 6, 10)])

    def test_errors_give_the_line_counted_with_header_blank_and_quoted_lines(self):
        start = b'path,label,note\r\n\r\n"a\nb.jpg",1,"x\r\ny"\n'  # lines 1 to 5
        for rows, line, word in ((b'c.jpg,2,a"b\n', 6, "quote"), (b'c.jpg,2,"a" b\n', 6, "quote"), (b'\nc.jpg,2,"never\nclosed\n', 7, "never closed"),
                                 (b"c.jpg,2\n", 6, "2 fields"), (b"c.jpg,2,3,4\n", 6, "4 fields"), (b"c.jpg,2,a\0b\n", 6, "NUL"),
                                 (b"c.jpg,,x\n", 6, "label is empty"), (b",2,x\n", 6, "path is empty"),
                                 (b"c.jpg,99999999999999999999,x\n", 6, "64 bits"), (b'c.jpg,"[1]",x\n', 6, "label")):
            self.refused("csv", self.put("list.csv", start + rows), f"line {line}:", word)

    def test_labels_are_whole_numbers_of_64_bits(self):
        numbers = [0, -1, 2**63 - 1, -(2**63), 2**53 + 1, 7]
        path = self.write([(f"{n}.jpg", text) for n, text in enumerate([*map(str, numbers[:-1]), " +007"])])
        found = self.probe("csv", path)
        self.assertEqual((found.labels(), found.kinds()), (numbers, {"integer"}))
        self.assertEqual(found.inputs[0].bad, "no such file")

    def test_one_label_that_is_no_number_makes_class_names_of_all(self):
        labels = ["1", "02", "dog", "1.5", " cat ", "99999999999999999999"]
        found = self.probe("csv", self.write([(f"{n}.jpg", label) for n, label in enumerate(labels)]))
        self.assertEqual((found.labels(), found.kinds()), (labels, {"class"}))
        self.assertEqual(len(found.warnings), 1)
        self.assertIn("line 4 has the label dog", found.warnings[0])

    def test_fractions_are_kept_to_the_last_bit_and_whole_numbers_among_them_too(self):
        draw = random.Random(2)
        numbers = [0.1, 1e-7, 16777217.0, -2.5, 5e-324, 1.7976931348623157e308, 3.0, 2.0**53]
        numbers += [value for value in (struct.unpack("<d", draw.randbytes(8))[0] for _ in range(300)) if value == value and abs(value) != float("inf")]
        texts = [repr(number) for number in numbers] + ["12", "+0.5", "1E3"]
        found = self.probe("csv", self.write([(f"{n}.jpg", text) for n, text in enumerate(texts)]))
        self.assertEqual(found.kinds(), {"float"})
        self.assertEqual([float(i.label_text) for i in found.inputs], numbers + [12.0, 0.5, 1000.0])

    def test_a_whole_number_that_is_no_double_is_refused_among_fractions(self):
        self.refused("csv", self.write([("0.jpg", "0.5"), ("1.jpg", "9007199254740993")]), "line 3", "9007199254740993")
        self.refused("csv", self.write([("0.jpg", "0.5"), ("1.jpg", "1e999")]), "line 3", "1e999")

    def test_lists_of_whole_numbers_are_kept(self):
        lists = [[1, 5, 7], [], [-(2**63), 2**53 + 1]]
        found = self.probe("csv", self.write([(f"{n}.jpg", json.dumps(one)) for n, one in enumerate(lists)]))
        self.assertEqual((found.labels(), found.kinds()), (lists, {"list"}))
        self.refused("csv", self.write([("0.jpg", "[1]"), ("1.jpg", "[1.5]")]), "line 3", "label")
        self.refused("csv", self.write([("0.jpg", "[1]"), ("1.jpg", "cat")]), "line 3", "label")

    def test_columns_are_found_by_name_and_a_missing_one_is_named_with_the_header(self):
        self.make_files(1)
        path = self.write([("7", "0.jpg", "x")], ("class id", "file", "path"))
        found = self.probe("csv", path, "--path-column", "file", "--label-column", "class id")
        self.assertEqual([(i.key, i.label, i.metadata) for i in found.inputs], [("0.jpg", 7, {"path": "x"})])
        self.refused("csv", path, 'no column "label"', '"class id", "file", "path"', "--label-column")
        self.refused("csv", self.write([], ("path", "label", "x", "x")), "two columns", '"x"')
        self.refused("csv", self.put("list.csv", b""), "header")
        self.refused("csv", self.put("list.csv", "path,label\n".encode("utf-16")), "UTF-16")

    def test_a_label_column_of_another_name_may_not_hide_one_called_label(self):
        path = self.write([("0.jpg", "0.5", "x")], ("path", "score", "label"))
        self.refused("csv", path, 'the column "label" cannot be kept', more=("--label-column", "score"))

    def test_bytes_that_are_not_utf8_are_kept(self):
        self.put("list.csv", b"path,label,note\n\xff.jpg,caf\xe9,\xfe\n")
        with open(os.fsencode(self.work) + b"/\xff.jpg", "wb") as file:
            file.write(b"content")
        one = self.probe("csv", self.work / "list.csv").inputs[0]
        self.assertEqual((os.fsencode(one.key), os.fsencode(one.label), one.content), (b"\xff.jpg", b"caf\xe9", b"content"))
        self.assertEqual(one.metadata, {"note_hex": "fe"})

    def test_what_a_list_names_and_is_no_file_is_bad(self):
        self.make_files(1)
        (self.work / "folder.jpg").mkdir()
        os.mkfifo(self.work / "pipe.jpg")
        os.symlink("nowhere", self.work / "link.jpg")
        names = ["0.jpg", "folder.jpg", "pipe.jpg", "link.jpg", "0.jpg/x.jpg", "gone.jpg"]
        found = self.probe("csv", self.write([(name, 1) for name in names]))
        self.assertEqual([i.bad for i in found.inputs],
                         ["", "is a folder, not a file", "is not a regular file", "no such file", "no such file", "no such file"])

    def test_paths_are_relative_to_the_list_or_absolute_and_keys_are_as_written(self):
        self.put("data/1.jpg", b"one")
        self.put("2.jpg", b"two")
        path = self.write([("./1.jpg", 1), ("../2.jpg", 2), (str(self.work / "2.jpg"), 3)], name="data/list.csv")
        found = self.probe("csv", path)
        self.assertEqual([(i.key, i.content) for i in found.inputs], [("./1.jpg", b"one"), ("../2.jpg", b"two"), (str(self.work / "2.jpg"), b"two")])
        self.assertEqual(len(found.warnings), 1)
        self.assertIn("2 paths leave the folder of the list (../2.jpg, ...)", found.warnings[0])

    def test_thousands_of_rows_stand_in_their_order_whatever_thread_looked_at_them(self):
        self.make_files(3)
        rows = [(f"{n % 3}.jpg" if n < 3 else f"{n}.jpg", n) for n in range(30_000)]
        found = self.probe("csv", self.write(rows))
        self.assertEqual([(i.key, i.label) for i in found.inputs], rows)

    def test_of_several_bad_rows_the_first_is_named_every_time(self):
        rows = [(f"{n}.jpg", 0.5) for n in range(5000)]
        rows[4999] = rows[4000] = rows[3000] = ("x.jpg", "1e999")
        path = self.write(rows)
        for _ in range(10):
            self.refused("csv", path, "line 3002:")
        # Whatever the fault is that they have.
        path = self.put("list.jsonl", b"".join(b'{"path": "%d", "label": %s}\n' % (n, {4000: b'"x"', 4999: b"true"}.get(n, b"1")) for n in range(5000)))
        for _ in range(10):
            self.refused("jsonl", path, "line 4001:", "different kinds")


class Jsonl(SourceCase):
    def write(self, objects):
        return self.put("list.jsonl", "".join(json.dumps(one) + "\n" for one in objects).encode())

    def test_labels_of_each_kind_are_those_of_the_json(self):
        for labels, kind in (([3, -(2**63), 2**63 - 1, 2**53 + 1], "integer"), (["cat", "dog é", "1"], "class"),
                             ([[1, 5, 7], [], [2**53 + 1]], "list"), ([0.123, -2.5, 1e-07, 16777217.0, 1e300], "float")):
            found = self.probe("jsonl", self.write([{"path": f"{n}.jpg", "label": label} for n, label in enumerate(labels)]))
            self.assertEqual((found.labels(), found.kinds()), (labels, {kind}))

    def test_other_members_stay_in_order_with_all_their_digits(self):
        line = '{"b": 1.10, "path": "0.jpg", "a": {"z": [1, 2.50, null], "label": "in\\u0000 side"}, "label": 1, "\\u0063": 12345678901234567890123 , "d":" x  y "}'
        self.put("list.jsonl", line.encode() + b"\n")
        one = self.probe("jsonl", self.work / "list.jsonl").inputs[0]
        self.assertEqual(one.metadata_text, '{"b":1.10,"a":{"z":[1,2.50,null],"label":"in\\u0000 side"},"\\u0063":12345678901234567890123,"d":" x  y "}')

    def test_members_may_be_named_with_escapes_and_otherwise(self):
        self.put("0.jpg", b"zero")
        path = self.put("list.jsonl", b'{"p\\u0061th": "0.j\\u0070g", "l\\u0061bel": 4}\n{"label": 5, "path": "x"}')
        found = self.probe("jsonl", path)
        self.assertEqual([(i.key, i.label, i.content) for i in found.inputs], [("0.jpg", 4, b"zero"), ("x", 5, b"")])
        found = self.probe("jsonl", self.write([{"file": "0.jpg", "y": 1, "path": 2}]), "--path-column", "file", "--label-column", "y")
        self.assertEqual([(i.key, i.label, i.metadata) for i in found.inputs], [("0.jpg", 1, {"path": 2})])

    def test_blank_lines_a_byte_order_mark_and_carriage_returns_are_allowed(self):
        path = self.put("list.jsonl", b'\xef\xbb\xbf\r\n{"path": "a", "label": 1}\r\n \t\r\n\n{"path": "b", "label": 2}')
        self.assertEqual([(i.key, i.sequence) for i in self.probe("jsonl", path).inputs], [("a", 2), ("b", 5)])

    def test_errors_give_the_line_counted_with_blank_ones(self):
        good = b'{"path": "a", "label": 1}\n\n'
        for line, words in ((b"[1]", "not a JSON object"), (b'{"path": "b", "label": }', "well-formed"), (b'{"path": "b"', "well-formed"),
                            (b'{"path": "b"}', '"label"'), (b'{"label": 1}', '"path"'), (b'{"path": 1, "label": 1}', "not a string"),
                            (b'{"path": "", "label": 1}', "path is empty"), (b'{"path": "a\\u0000b", "label": 1}', "NUL"),
                            (b'{"path": "b", "label": true}', "label"), (b'{"path": "b", "label": null}', "label"), (b'{"path": "b", "label": {"x": 1}}', "label"),
                            (b'{"path": "b", "label": [1, "x"]}', "label"), (b'{"path": "b", "label": [1.5]}', "label"),
                            (b'{"path": "b", "label": 9223372036854775808}', "64 bits"), (b'{"path": "b", "label": 1.5}', "different kinds"),
                            (b'{"path": "b", "label": "1"}', "different kinds"), (b'{"path": "b", "label": 1, "label": 2}', "two members"),
                            (b'{"path": "\xff", "label": 1}', "well-formed"), (b'{"path": "b", "label": 1} x', "well-formed")):
            text = self.refused("jsonl", self.put("list.jsonl", good + line + b"\n" + good), "line 3:", words)
            self.assertNotIn("[json.exception", text)

    def test_lines_of_any_length_around_the_reads_size_are_whole(self):
        for size in [*range(32_700, 32_800, 7), 200_000]:
            found = self.probe("jsonl", self.write([{"path": "a", "label": 1, "x": "y" * size}, {"path": "b", "label": 2}]))
            self.assertEqual([len((i.metadata or {"x": ""})["x"]) for i in found.inputs], [size, 0])

    def test_a_line_nested_as_deep_as_may_be_does_no_harm(self):
        deep = b'{"path": "a", "label": 1, "x": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"
        self.assertEqual(len(self.probe("jsonl", self.put("list.jsonl", deep)).inputs[0].metadata_text), len('{"x":}') + 1_000_000)


if __name__ == "__main__":
    probed.PROBE.append(sys.argv.pop(1))
    unittest.main()
