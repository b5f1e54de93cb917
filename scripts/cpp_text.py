"""Prepares C++ sources for the checks: removes comments and literals, finds the functions."""

import re

LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)

# The end of a function's head: a parameter list, perhaps with qualifiers.
BODY_HEAD = re.compile(
    r"(\)|\])\s*(const|noexcept(\(.*\))?|override|final|mutable|try|&&?|->[^;{}]*|requires[^;{}]*)*"
    r"\s*$|\)\s*(const|noexcept|\s)*:(?!:)[^;]*$", re.S)
SCOPE_HEAD = re.compile(r"^\s*(inline\s+)?(namespace\b|extern\s*$)")
TYPE_HEAD = re.compile(r"^\s*(template\s*<.*>\s*)?(typedef\s+)?(class|struct|union|enum)\b[^()]*$", re.S)


def blank(match):
    """Returns only the line feeds of a match."""
    return "\n" * match.group(0).count("\n")


def without_comments_and_literals(text):
    """Returns the code without comments, with the same lines. Only the quotes of a literal remain."""
    def replace(match):
        quote = match.group(0)[0]
        body = blank(match)
        return body if quote == "/" else f'"{body}"'

    return LITERAL.sub(replace, text)


def functions(text):
    """Returns (first line, last line, name) of each outermost function body."""
    code = DIRECTIVE.sub(blank, without_comments_and_literals(text))
    found, stack = [], []  # stack of (is a function, its head's line, its name)
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        mark, at = match.group(0), match.start()
        if mark == "{":
            head = code[head_start:at]
            inside = any(entry[0] for entry in stack)
            is_function = (not inside and not SCOPE_HEAD.match(head) and not TYPE_HEAD.match(head)
                           and bool(BODY_HEAD.search(head)))
            lead = len(head) - len(head.lstrip())
            line = code.count("\n", 0, head_start + lead) + 1
            stack.append((is_function, line, name_of(head)))
        elif mark == "}" and stack:
            is_function, line, name = stack.pop()
            if is_function:
                found.append((line, code.count("\n", 0, at) + 1, name))
        head_start = at + 1
    return found


def name_of(head):
    """Returns the last name before the first parenthesis, for messages."""
    names = re.findall(r"[\w~:]+", head.split("(")[0])
    return names[-1] if names else "?"
