"""Prints src/data/unicode_ranges.cpp: letters, numbers and white space of Unicode 16.

They are asked of PyPI's tiktoken, so that both see the same classes in every code point.
Usage: .deps/venv/bin/python scripts/unicode_ranges.py | clang-format >src/data/unicode_ranges.cpp
"""

import itertools

import tiktoken

CLASSES = {"letter": r"\p{L}", "number": r"\p{N}", "space": r"\s"}


def members(pattern):
    """The code points that a regular expression of one character finds."""
    finder = tiktoken.Encoding(pattern, pat_str=pattern, special_tokens={},
                               mergeable_ranks={bytes([byte]): byte for byte in range(256)})
    return (code for code in range(0x110000)
            if not 0xD800 <= code < 0xE000 and finder.encode_ordinary(chr(code)))


def ranges(codes):
    for _, run in itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        run = [code for _, code in run]
        yield run[0], run[-1]


def main():
    found = sorted((first, last, name) for name, pattern in CLASSES.items()
                   for first, last in ranges(members(pattern)))
    print('// Written by scripts/unicode_ranges.py.\n#include "data/unicode_ranges.h"\n\n'
          "namespace lockstep::data {\nnamespace {\n\n"
          "using enum CharacterClass;\n\nconstexpr CharacterRange kRanges[]{")
    print(", ".join(f"{{0x{first:x}, 0x{last:x}, {name}}}" for first, last, name in found))
    print("};\n\n}  // namespace\n\nstd::span<const CharacterRange> character_ranges() "
          "{ return kRanges; }\n\n}  // namespace lockstep::data")


main()
