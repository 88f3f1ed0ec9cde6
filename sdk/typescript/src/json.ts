/**
 * JSON whose numbers keep their digits. An integer that a number cannot represent is a
 * bigint, in both directions; such a decimal is parsed to a string.
 */

/** A value of JSON. */
export type Json = null | boolean | string | number | bigint | Json[] | { [name: string]: Json | undefined };

const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Parses JSON. It throws SyntaxError. */
export function parse(text: string): unknown {
  const mark = crypto.randomUUID();
  let marked = false;
  const safe = text.replace(token, (lexeme) => {
    if (lexeme[0] === '"' || held(lexeme)) return lexeme;
    marked = true;
    return `"${mark}${lexeme}"`;
  });
  JSON.parse(text); // the marks could hide a syntax error
  return JSON.parse(safe, marked ? (_, value) => unmark(value, mark) : undefined);
}

function unmark(value: unknown, mark: string): unknown {
  if (typeof value !== "string" || !value.startsWith(mark)) return value;
  const lexeme = value.slice(mark.length);
  return /^-?\d+$/.test(lexeme) ? BigInt(lexeme) : lexeme;
}

/** Writes a value as JSON. It throws TypeError for a value that JSON cannot represent. */
export function stringify(value: unknown): string {
  const mark = crypto.randomUUID();
  const text = JSON.stringify(value, function (this: Record<string, unknown>, name, made: unknown) {
    const held = this[name]; // before a toJSON
    if (typeof held === "number" && !Number.isFinite(held)) throw new TypeError(`${held} is no value of JSON`);
    return typeof held === "bigint" ? mark + held : made;
  });
  if (text === undefined) throw new TypeError("no value of JSON");
  return text.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}

/** Writes a value with sorted member names, so equal values give equal texts. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return stringify(value);
  const names = Object.keys(value).filter((name) => value[name] !== undefined);
  return `{${names.sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name] as Json)}`).join(",")}}`;
}

const deepest = 32;

/**
 * Reports whether JSON preserves a value, depth levels below the top; undefined members are ignored. A bigint
 * that a number represents exactly, such as 10n ** 18n, passes too, and is parsed to that number.
 */
export function survives(value: unknown, depth = 0): value is Json {
  switch (typeof value) {
    case "boolean":
      return true;
    case "string":
      return value.isWellFormed();
    case "number":
      return Number.isFinite(value);
    case "bigint":
      return !Number.isSafeInteger(Number(value));
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth >= deepest) return false;
  if (Array.isArray(value)) return Array.from(value).every((item) => survives(item, depth + 1));
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) return false;
  return Object.entries(value).every(([name, item]) => name.isWellFormed() &&
    (item === undefined || survives(item, depth + 1)));
}

/** Reports whether a number represents a lexeme exactly. */
function held(lexeme: string): boolean {
  if (lexeme.length <= 15 && !/[eE]/.test(lexeme)) return true;
  return plain(lexeme) === plain(String(Number(lexeme)));
}

/** The value of a lexeme in a normal form: digits without leading and trailing zeros, and an exponent. */
function plain(lexeme: string): string {
  const [all, sign, whole, part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(lexeme) ?? [];
  if (all === undefined || whole === undefined) return lexeme; // Infinity
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}
