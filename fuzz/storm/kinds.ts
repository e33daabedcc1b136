/** What a storm is made of. Each kind can be left out: that is how a finding is narrowed down. */
export const KINDS = {
  http1: "clients that speak HTTP/1.1",
  http2: "clients that speak HTTP/2",
  websockets: "WebSockets, over both",
  uploads: "bodies of a known length and in chunks",
  unfinished: "bodies and heads that stop in the middle",
  unread: "clients that read nothing: no bytes, or a window of 0",
  leaving: "clients that leave by FIN or RST, at any point",
  cancelled: "clients that reset their streams",
  revocations: "uploads whose token is revoked",
  reloads: "reloads of the configuration",
  mirrors: "routes whose requests are copied to an odd backend",
  unavailable: "honest backends that answer 503, on routes that retry",
  statuses: "502, 503 and 504 of odd backends, on routes that retry",
  heads: "heads that no proxy may pass on",
  forbidden: "header fields and trailers that HTTP/2 forbids",
  interim: "interim answers, few and many",
  trailers: "trailers, allowed and not",
  early: "answers while the request's body is still on its way",
  endings: "an empty DATA frame with END_STREAM, or a last chunk, in one segment with the head",
  resets: "backends that reset the stream or the connection",
  goaway: "GOAWAY, and connections that close after an answer",
  half: "half a frame, half a line, half a chunk",
  windows: "windows of 0, windows that change or overflow, and backends that read nothing",
  frames: "frames and bytes that nobody expects",
  silence: "answers that never come, or never end",
  floods: "long answers, and answers in many small parts",
} as const;

export type Kind = keyof typeof KINDS;
export type Kinds = ReadonlySet<Kind>;

export const KIND_NAMES: readonly Kind[] = Object.keys(KINDS).filter(isKind);

export function isKind(text: string): text is Kind {
  return Object.hasOwn(KINDS, text);
}
