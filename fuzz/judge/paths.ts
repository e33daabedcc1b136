import { PUBLIC } from "../subject/subject.ts";

/** Splits a request target, also in absolute form, into path and query. */
export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const origin = target.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = origin.indexOf("?");
  const path = mark === -1 ? origin : origin.slice(0, mark);
  return { path: path === "" ? "/" : path, query: mark === -1 ? "" : origin.slice(mark) };
}

/** Decodes all percent-encodings once. */
function decodedOnce(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Whether two targets have the same path, however it is encoded, and the same query. */
export function isSame(one: string, other: string): boolean {
  const [left, right] = [splitTarget(one), splitTarget(other)];
  return decodedOnce(left.path) === decodedOnce(right.path) && left.query === right.query;
}

/** The only spelling in which a path may arrive (RFC 3986 §3.3, without ambiguous characters). */
const CLEAN = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-F]{2})+)*\/?$/;

export function isClean(path: string): boolean {
  return CLEAN.test(path) && !/\/\.{1,2}(?:\/|$)/.test(path);
}

/** Whether a path is public even for the most careless backend. */
export function isPublic(path: string): boolean {
  return path.startsWith(PUBLIC) && carelesslyRead(path).startsWith(PUBLIC);
}

/** Normalizes a path repeatedly: decoded until nothing changes, backslashes replaced, parameters, dots and empty segments removed. */
function carelesslyRead(path: string): string {
  let text = path;
  for (let before = ""; before !== text;) {
    before = text;
    text = decodedOnce(text);
  }
  const kept: string[] = [];
  for (const segment of text.replaceAll("\\", "/").split("/")) {
    const name = segment.replace(/[;\0].*$/s, "");
    if (name === "..") kept.pop();
    else if (name !== "." && name !== "") kept.push(name);
  }
  return `/${kept.join("/")}/`;
}
