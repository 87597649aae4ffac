"""The C of this tree as the tools of the house read it: includes, functions, types.

No compiler: text without comments and strings, cut at the top level of braces. It
relies on what clang-format and the house's law make of the code (a function's body
begins with its own brace, nothing at the top level is made by a macro but kernels).
"""

import re
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])+'")
WORD = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*(\s*\()?")  # no member of a struct; called?
LOCAL = re.compile(r"(?:\b(?!return|else|case|goto)[A-Za-z_]\w*[\s*]\s*\**|,\s*\**)"
                   r"([A-Za-z_]\w*)\s*(?:=(?!=)|;|\[|,(?=[^()]*;))")
INVOCATION = re.compile(r"\s*[A-Z_][A-Z_0-9]*\((?:[^()]|\([^()]*\))*\)(?=\s*\n)")
NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"}


def blank(match):
    """As many lines of nothing."""
    return "\n" * match.group().count("\n")


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


class Function:
    """One definition: where it stands, how long it is, what its body says."""

    def __init__(self, name, head, line, n_lines, body):
        self.name, self.line, self.n_lines, self.body = name, line, n_lines, body
        self.head_words = set(WORD.findall(head))
        self.static = "static" in self.head_words

    def names(self):
        """What the body calls or hands on, in its order: no members, no variables of its own."""
        own = self.head_words | set(LOCAL.findall(self.body))
        for match in NAME.finditer(self.body):
            name = re.match(r"\w+", match.group()).group()
            if match.group(1) or name not in own:
                yield name


class File:
    """One .c or .h: `name` from the root, `node` the same without folder src and ending."""

    def __init__(self, root, path):
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.node = re.sub(r"^src/|\.[ch]$", "", self.name)
        self.room = self.node.rpartition("/")[0]
        self.is_header = path.suffix == ".h"
        self.text = without_comments(path.read_text(encoding="utf-8"))
        self.n_lines = self.text.count("\n")
        self.includes = [(self.line_of(m.start()), m.group(1) == '"', m.group(2))
                         for m in INCLUDE.finditer(self.text)]
        self.code = STRING.sub('""', INCLUDE.sub("", self.text))
        self.words = set(WORD.findall(self.code))
        self.pasted = tuple(re.findall(r"(\w+)##", self.code))  # words begun by macros
        self.static_macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t][^\n]*\bstatic\b",
                                            self.code, re.M))
        self.functions, self.declared, self.types = [], [], []
        self._cut()

    def line_of(self, at, text=None):
        return (self.text if text is None else text).count("\n", 0, at) + 1

    def _cut(self):
        """Finds what stands at the top level."""
        code = DIRECTIVE.sub(blank, self.code)
        start, depth, opened = 0, 0, None
        for match in re.finditer(r"[{};]", code):
            sign, at = match.group(), match.start()
            if sign == "{":
                opened = at if depth == 0 and opened is None else opened
                depth += 1
            elif sign == "}":
                depth -= 1
                if depth == 0 and self._function(code, start, opened, at + 1):
                    start, opened = at + 1, None
            elif depth == 0:
                self._statement(code, start, at)
                start, opened = at + 1, None

    def _function(self, code, start, opened, end):
        """Takes code[start:end] for a function, if it is one."""
        while INVOCATION.match(code, start, opened):
            start = INVOCATION.match(code, start, opened).end()
        head = code[start:opened]
        name = function_name(head)
        if not name or not head.rstrip().endswith(")") or "=" in head:
            return False
        start += len(head) - len(head.lstrip())
        line = self.line_of(start, code)
        self.functions.append(Function(name, head, line, self.line_of(end, code) - line + 1,
                                       code[opened:end]))
        return True

    def _statement(self, code, start, end):
        text = code[start:end]
        line = self.line_of(start + len(text) - len(text.lstrip()), code)
        name = type_name(text.strip())
        if name:
            self.types.append((name, line))
        elif "{" not in text and "=" not in text and not re.search(r"\btypedef\b", text):
            name = function_name(text)
            if name and text.rstrip().endswith(")"):
                self.declared.append((name, line))


def function_name(head):
    """The name before the first list of parameters, macros for attributes aside."""
    for match in re.finditer(r"(\w+)\s*\(", head):
        name = match.group(1)
        if name not in NOT_NAMES and not re.fullmatch(r"[A-Z_0-9]+", name):
            return name
    return None


def type_name(text):
    """The type that a statement defines; None where it only names one."""
    if text.startswith("typedef"):
        text = re.sub(r"\{.*\}", "{}", text, flags=re.S)
        if re.fullmatch(r"typedef\s+(struct|union|enum)\s+(\w+)\s+\2", text):
            return None
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", text)
        plain = re.search(r"(\w+)\s*(?:\(.*|\[.*)?$", text, re.S)
        return (pointer or plain).group(1)
    match = re.match(r"(?:struct|union|enum)\s+(\w+)\s*\{", text)
    return match.group(1) if match else None


def is_port(path):
    """Whether the file implements a module or POSIX once more, for Windows."""
    return ("_windows" in path.stem or path.stem == "os_none"
            or "/cli/windows/" in path.as_posix())


def read_tree(root, *patterns):
    """The files of these patterns below `root`."""
    root = Path(root)
    files = [File(root, path) for pattern in patterns for path in sorted(root.glob(pattern))
             if not is_port(path)]
    macros = set().union(*(file.static_macros for file in files)) if files else set()
    for file in files:
        for function in file.functions:
            function.static = function.static or not macros.isdisjoint(function.head_words)
    return files
