import { PUBLIC } from "../subject/subject.ts";

/** Path and query of a request target, those of an absolute form, too. */
export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const origin = target.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = origin.indexOf("?");
  const path = mark === -1 ? origin : origin.slice(0, mark);
  return { path: path === "" ? "/" : path, query: mark === -1 ? "" : origin.slice(mark) };
}

/** Every percent-encoding taken off, once. */
function decodedOnce(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Whether two targets mean the same path, however it is encoded, with the same query. */
export function isSame(one: string, other: string): boolean {
  const [left, right] = [splitTarget(one), splitTarget(other)];
  return decodedOnce(left.path) === decodedOnce(right.path) && left.query === right.query;
}

/** The spelling in which alone a path may arrive (RFC 3986 §3.3, without what has two readings). */
const CLEAN = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-F]{2})+)*\/?$/;

export function isClean(path: string): boolean {
  return CLEAN.test(path) && !/\/\.{1,2}(?:\/|$)/.test(path);
}

/** Whether even the most careless backend finds nothing but what is public behind a path. */
export function isPublic(path: string): boolean {
  return path.startsWith(PUBLIC) && carelesslyRead(path).startsWith(PUBLIC);
}

/** Decoded until nothing changes, back-slashes turned, path parameters cut off, dots and empty segments resolved. */
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
