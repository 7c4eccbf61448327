// JSON that is not changed by looking at it. JSON.parse would turn 1.0 into 1 and
// 12345678901234567890 into another number; an editor that saves what it shows must not.
//
// A node is {type, raw} for a scalar (type "string", "number", "true", "false", "null"),
// {type: "object", members: [{key, raw, value}]} or {type: "array", items: [node]}.

const DEPTH_MAX = 200;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const BLANK = /[ \t\r\n]*/y;

/** What is wrong, where: `line` and `column` count from 1, `offset` from 0. */
export class JsonError extends Error {
  constructor(message, text, offset) {
    const before = text.slice(0, offset);
    const line = before.split("\n").length;
    const column = offset - before.lastIndexOf("\n");
    super(`Line ${line}, column ${column}: ${message}`);
    Object.assign(this, { line, column, offset });
  }
}

export function parse(text) {
  let at = 0;

  const fail = (message, offset = at) => {
    throw new JsonError(message, text, offset);
  };
  const blank = () => {
    BLANK.lastIndex = at;
    BLANK.test(text);
    at = BLANK.lastIndex;
  };
  const found = () => (at >= text.length ? "the text ends" : `there is “${text[at]}”`);

  function scalar(type, pattern, wrong) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (!match) fail(wrong);
    at = pattern.lastIndex;
    return { type, raw: match[0] };
  }
  function word(text_) {
    if (!text.startsWith(text_, at)) fail(`a value should stand here, but ${found()}.`);
    at += text_.length;
    return { type: text_, raw: text_ };
  }
  const string = () =>
    scalar("string", STRING, "this string is not closed, or has a character that must be escaped.");

  function object(depth) {
    const members = [];
    at++;
    blank();
    if (text[at] === "}") {
      at++;
      return { type: "object", members };
    }
    for (;;) {
      if (text[at] !== '"') {
        fail(text[at] === "}"
          ? "the comma before “}” has nothing after it."
          : `a property name in double quotes should stand here, but ${found()}.`);
      }
      const raw = string().raw;
      blank();
      if (text[at] !== ":") fail(`after a property name comes “:”, but ${found()}.`);
      at++;
      members.push({ key: JSON.parse(raw), raw, value: value(depth + 1) });
      if (text[at] === ",") {
        at++;
        blank();
      } else if (text[at] === "}") {
        at++;
        return { type: "object", members };
      } else {
        fail(`“,” or “}” should stand here, but ${found()}.`);
      }
    }
  }

  function array(depth) {
    const items = [];
    at++;
    blank();
    if (text[at] === "]") {
      at++;
      return { type: "array", items };
    }
    for (;;) {
      if (text[at] === "]") fail("the comma before “]” has nothing after it.");
      items.push(value(depth + 1));
      if (text[at] === ",") {
        at++;
        blank();
      } else if (text[at] === "]") {
        at++;
        return { type: "array", items };
      } else {
        fail(`“,” or “]” should stand here, but ${found()}.`);
      }
    }
  }

  function value(depth) {
    if (depth > DEPTH_MAX) fail(`more than ${DEPTH_MAX} levels deep.`);
    blank();
    const c = text[at];
    let node;
    if (c === "{") node = object(depth);
    else if (c === "[") node = array(depth);
    else if (c === '"') node = string();
    else if (c === "t") node = word("true");
    else if (c === "f") node = word("false");
    else if (c === "n") node = word("null");
    else node = scalar("number", NUMBER, `a value should stand here, but ${found()}.`);
    blank();
    return node;
  }

  const root = value(0);
  if (at < text.length) fail(`nothing should follow the value, but ${found()}.`);
  return root;
}

/** As JavaScript sees it: for looking, never for writing back. */
export function toValue(node) {
  if (!node) return undefined;
  if (node.type === "object") {
    return Object.fromEntries(node.members.map((member) => [member.key, toValue(member.value)]));
  }
  if (node.type === "array") return node.items.map(toValue);
  return JSON.parse(node.raw);
}

/** The last member of that name, as parsers see it; undefined when there is none. */
export function member(node, key) {
  if (node?.type !== "object") return undefined;
  return node.members.findLast?.((m) => m.key === key)?.value
    ?? [...node.members].reverse().find((m) => m.key === key)?.value;
}

/** Without the members of these names. */
export function without(node, keys) {
  return { type: "object", members: node.members.filter((m) => !keys.has(m.key)) };
}

export function compact(node) {
  if (node.type === "object") {
    return `{${node.members.map((m) => `${m.raw}:${compact(m.value)}`).join(",")}}`;
  }
  if (node.type === "array") return `[${node.items.map(compact).join(",")}]`;
  return node.raw;
}

const SHORT_MAX = 60;

/** Indented by two; arrays of a few scalars stay on one line. */
export function pretty(node, indent = "") {
  const deeper = indent + "  ";
  if (node.type === "object") {
    if (!node.members.length) return "{}";
    const lines = node.members.map((m) => `${deeper}${m.raw}: ${pretty(m.value, deeper)}`);
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  if (node.type === "array") {
    if (!node.items.length) return "[]";
    if (node.items.every((item) => item.raw !== undefined)) {
      const line = `[${node.items.map((item) => item.raw).join(", ")}]`;
      if (line.length <= SHORT_MAX) return line;
    }
    return `[\n${node.items.map((item) => deeper + pretty(item, deeper)).join(",\n")}\n${indent}]`;
  }
  return node.raw;
}

const TOKEN = /("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|([{}[\],:])/g;

/** Pieces of a text as [kind, text], also of one that is not JSON yet: for colouring. */
export function* tokens(text) {
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > at) yield ["", text.slice(at, match.index)];
    at = match.index + match[0].length;
    if (match[1] !== undefined) {
      yield [match[2] === undefined ? "string" : "key", match[1]];
      if (match[2] !== undefined) yield ["mark", match[2]];
    } else {
      yield [match[3] !== undefined ? "number" : match[4] !== undefined ? "word" : "mark", match[0]];
    }
  }
  if (at < text.length) yield ["", text.slice(at)];
}

// ── Partition keys ──────────────────────────────────────────────────────────────────────────────

/** `/a/"b c"` as ["a", "b c"]. */
export function pathSegments(path) {
  const segments = [];
  for (const match of path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^/]*))/g)) {
    const quoted = match[1] ?? match[2];
    segments.push(quoted === undefined ? match[3].trim() : quoted.replace(/\\(.)/g, "$1"));
  }
  return segments;
}

/** The value of x-ms-documentdb-partitionkey for a document: a JSON array, ASCII only. */
export function partitionKeyOf(document, paths) {
  const parts = paths.map((path) => {
    let node = document;
    for (const segment of pathSegments(path)) node = member(node, segment);
    // An object or array as a key counts as no key at all.
    return node?.raw === undefined ? "{}" : node.raw;
  });
  return ascii(`[${parts.join(",")}]`);
}

export const ascii = (text) =>
  text.replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A partition key for people: `a`, `7`, `a / b`, `(none)`. */
export function keyText(header) {
  return JSON.parse(header)
    .map((part) => (typeof part === "string" ? part || "“”" : part === null ? "null"
      : typeof part === "object" ? "(none)" : String(part)))
    .join(" / ") || "(none)";
}
