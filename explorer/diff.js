// The difference of two texts, line by line.

const LINES_MAX = 2000;
const CONTEXT = 3;

/** Lines as [" " | "-" | "+", text]. Texts that are too long to compare differ wholly. */
export function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const middleA = a.slice(head, a.length - tail);
  const middleB = b.slice(head, b.length - tail);
  return [
    ...a.slice(0, head).map((line) => [" ", line]),
    ...(middleA.length > LINES_MAX || middleB.length > LINES_MAX
      ? [...middleA.map((line) => ["-", line]), ...middleB.map((line) => ["+", line])]
      : longestCommon(middleA, middleB)),
    ...a.slice(a.length - tail).map((line) => [" ", line]),
  ];
}

function longestCommon(a, b) {
  const width = b.length + 1;
  const length = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i * width + j] = a[i] === b[j]
        ? length[(i + 1) * width + j + 1] + 1
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i++]]);
      j++;
    } else if (j === b.length || (i < a.length && length[(i + 1) * width + j] >= length[i * width + j + 1])) {
      lines.push(["-", a[i++]]);
    } else {
      lines.push(["+", b[j++]]);
    }
  }
  return lines;
}

/** Without what is far from any difference; ["…", n] stands for n lines left out. */
export function nearChanges(lines) {
  const shown = new Uint8Array(lines.length);
  lines.forEach(([mark], at) => {
    if (mark !== " ") shown.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  const out = [];
  for (let at = 0; at < lines.length; at++) {
    if (shown[at]) out.push(lines[at]);
    else if (out.at(-1)?.[0] === "…") out.at(-1)[1]++;
    else out.push(["…", 1]);
  }
  return out;
}
