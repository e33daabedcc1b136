import { readChunks } from "./chunks.ts";
import { connectionOptions, type Fields, type Head, readHead, valuesOf } from "./head.ts";

/** One final answer, in Latin-1. */
export interface Answer {
  readonly status: number;
  readonly fields: Fields;
  readonly body: string;
  readonly trailers: Fields;
}

export interface Answers {
  /** Complete final answers in order, without interim ones (1xx except 101). */
  readonly whole: readonly Answer[];
  /** What the rest is: nothing, the beginning of an answer, data after a switch of protocols, or not HTTP at all. */
  readonly stop: "end" | "incomplete" | "unclear" | "switched";
  readonly rest: string;
}

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [\t\u0020-\u007e\u0080-\u00ff]*$/;

/**
 * Reads the answers on one connection.
 * @param methods of the corresponding requests; an answer without one is read as that of a GET.
 */
export function readAnswers(text: string, methods: readonly string[]): Answers {
  const whole: Answer[] = [];
  let at = 0;
  for (;;) {
    const stopped = (stop: Answers["stop"]): Answers => ({ whole, stop, rest: text.slice(at) });
    if (at === text.length) return stopped("end");
    const head = readHead(text, at);
    if (typeof head === "string") return stopped(head);
    const status = Number(STATUS_LINE.exec(head.startLine)?.[1]);
    if (!(status >= 100 && status <= 599)) return stopped("unclear");
    if (status < 200 && status !== 101) {
      at = head.end;
      continue;
    }
    const bodyless =
      [101, 204, 304].includes(status) ||
      (methods[whole.length] === "HEAD" && !hasBodyAnyway(text, head));
    const read = bodyless
      ? { body: "", trailers: [], end: head.end }
      : readBody(text, head.fields, head.end);
    if (typeof read === "string") return stopped(read);
    whole.push({ status, fields: head.fields, body: read.body, trailers: read.trailers });
    at = read.end;
    if (status === 101) return { whole, stop: "switched", rest: text.slice(at) };
  }
}

/** Whether an answer to HEAD has a body: an unparsable head is refused before its method is known, and the connection closed. */
function hasBodyAnyway(text: string, { fields, end }: Head): boolean {
  const last = connectionOptions(fields).includes("close");
  return last && end < text.length && !text.startsWith("HTTP/1.1 ", end);
}

/** Reads a body, which has a length, is chunked, or lasts until the end of the connection, as for HTTP/1.0. */
function readBody(text: string, fields: Fields, start: number): ReturnType<typeof readChunks> {
  const codings = valuesOf(fields, "transfer-encoding");
  const lengths = valuesOf(fields, "content-length");
  if (codings.length > 0) {
    if (codings.join() !== "chunked" || lengths.length > 0) return "unclear";
    return readChunks(text, start);
  }
  if (lengths.length === 0 && connectionOptions(fields).includes("close")) {
    return { body: text.slice(start), trailers: [], end: text.length };
  }
  const [length = "", another] = lengths;
  if (another !== undefined || !/^\d{1,15}$/.test(length)) return "unclear";
  const end = start + Number(length);
  return end > text.length ? "incomplete" : { body: text.slice(start, end), trailers: [], end };
}
