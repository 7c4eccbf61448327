#!/usr/bin/env python3
"""Compiles the C++ in the documentation: check_snippets.py [compiler ...].

A block with a main() is a program of its own. Everything else is put into functions that have what the text around
it speaks of: containers, options, a host. Only the syntax and the types are checked."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILERS = ["g++-12", "clang++-19"]
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-fsyntax-only", f"-I{ROOT / 'include'}"]

# By file: what stands before its fragments, and what they are given.
SURROUNDINGS = {
    "docs/sdk-cpp.md": ("#include <iostream>\n#include <thread>\n#include <orrery/client.h>\n#include <orrery/json.h>\n"
                        "using namespace orrery::client;\n",
                        "const Container& orders, const std::string& key"),
    "docs/processor.md": ("#include <fstream>\n#include <iostream>\n#include <orrery/json.h>\n#include <orrery/processor.h>\n"
                          # Both namespaces at once, as programs have them: no name of one is in the other.
                          "using namespace orrery::client;\nusing namespace orrery::processor;\nnamespace client = orrery::client;\n",
                          "const client::Database& shop, const client::Container& orders, const client::Container& leases, "
                          "MonitoredFeedOptions feed_options, ChangeFeedHostOptions host_options, ChangeFeedProcessorHost& host"),
}
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs_of(name):
    """The blocks of a page that are whole programs."""
    return [text for text in BLOCK.findall((ROOT / name).read_text()) if "int main(" in text]


def units_of(name):
    """The C++ of a page as translation units: each program, and all fragments together. Lines are those of the page."""
    page = (ROOT / name).read_text()
    fragments, parameters = SURROUNDINGS[name]
    for match in BLOCK.finditer(page):
        line = page.count("\n", 0, match.start()) + 2
        text = f'#line {line} "{name}"\n{match[1]}'
        if "int main(" in text:
            yield text
        else:
            fragments += f"void snippet_{line}({parameters}) {{\n{text}\n}}\n"
    yield fragments


def main(compilers):
    failed = count = 0
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "snippet.cc"
        for name in SURROUNDINGS:
            for text in units_of(name):
                path.write_text(text)
                for compiler in compilers:
                    count += 1
                    done = subprocess.run([compiler, *FLAGS, str(path)], capture_output=True, text=True)
                    if done.returncode != 0:
                        failed += 1
                        print(f"{name} with {compiler}\n{done.stderr}")
    print(f"{count} compiled, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or COMPILERS))
