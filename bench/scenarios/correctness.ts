import { GRPC_ANSWER } from "../backends/grpc-answer.ts";
import { SMALL_BODY } from "../backends/nginx.ts";
import type { Peer, Running } from "../peers/peer.ts";
import type { Setting } from "../setting/setting.ts";
import { forge, garbage, type TokenKey } from "../setting/tokens.ts";
import { ask, type Question, type Reply } from "./ask.ts";
import { askHttp2 } from "./ask-http2.ts";

interface Kind {
  readonly tls: boolean;
  /** Whether 4 KiB are posted; by default, a GET is sent. */
  readonly post?: boolean;
  /** A GET over HTTP/2, or a unary gRPC call; by default, HTTP/1.1. */
  readonly http2?: "get" | "grpc";
}

/**
 * Checks before a measurement that a proxy works: it answers 200 and the backend's body to a valid token, and, if it verifies
 * tokens, 401 to a request without a token and to each invalid one. Throws an error that describes the failure.
 */
export async function checkCorrectness(
  setting: Setting,
  peer: Peer,
  running: Running,
  kind: Kind,
): Promise<void> {
  const key = setting.keys[peer.checks ?? "ES256"];
  const question = questionTo(setting, running, kind);
  const valid = await send({ ...question, token: await key.sign() }, kind);
  if (valid.status !== 200) throw new Error(`answers ${valid.status} to a valid token`);
  const body = kind.http2 === "grpc" ? GRPC_ANSWER.toString("latin1") : SMALL_BODY;
  if (valid.body !== body) throw new Error("gives another body than the backend's");
  await checkRefusals(setting, peer, running, kind);
}

/** Checks only the refusals. Throws an error that names what was let through. */
export async function checkRefusals(
  setting: Setting,
  peer: Peer,
  running: Running,
  kind: Kind,
): Promise<void> {
  if (peer.checks === undefined) return;
  const key = setting.keys[peer.checks];
  const question = questionTo(setting, running, kind);
  for (const [what, token] of Object.entries(await wrongTokens(key))) {
    const { status } = await send({ ...question, ...(token !== undefined && { token }) }, kind);
    // Envoy answers 403 to a token for another audience.
    if (status !== 401 && status !== 403) throw new Error(`answers ${status} to ${what}, not 401`);
  }
}

function send(question: Question, { http2 }: Kind): Promise<Reply> {
  return http2 === undefined ? ask(question) : askHttp2(question, http2 === "grpc");
}

function questionTo(
  { certificate }: Setting,
  { port }: Running,
  { tls, post = false }: Kind,
): Question {
  return {
    port,
    ca: tls ? certificate.pem : undefined,
    path: "/orders/4711",
    ...(post && { body: JSON.stringify({ text: "x".repeat(4_000) }) }),
  };
}

async function wrongTokens(key: TokenKey): Promise<Record<string, string | undefined>> {
  return {
    "no token": undefined,
    garbage: garbage(),
    "a forged signature": forge(await key.sign()),
    "an expired token": await key.sign({ lifetime: -60 }),
    "a token of another issuer": await key.sign({ issuer: "https://other.example.com" }),
    "a token for another audience": await key.sign({ audience: "other" }),
  };
}
