/**
 * A login with common mistakes, which the attacks in test/security/login-* exploit: it distinguishes unknown, disabled
 * and wrong by message and timing, accepts any JSON, does not limit hashing, trusts `X-Forwarded-For`, and locks a
 * username after five failures from any address.
 */
import { scrypt } from "node:crypto";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { listening } from "./listening.ts";
import type { Peer } from "./raw-client.ts";

interface NaiveUser {
  readonly password: string;
  readonly disabled?: boolean;
}

export interface NaiveLoginOptions {
  readonly users: Readonly<Record<string, NaiveUser>>;
  /** What five failures lock. */
  readonly lock: "name" | "address" | "nothing";
}

const ATTEMPTS = 5;
const derive = promisify(scrypt);

export async function startNaiveLogin({
  users,
  lock,
}: NaiveLoginOptions): Promise<Peer & AsyncDisposable> {
  const failures = new Map<string, number>();

  async function answerTo(body: unknown, address: string): Promise<[number, string]> {
    const { username, password } = Object(body);
    const key = lock === "name" ? String(username) : lock === "address" ? address : "";
    if (lock !== "nothing" && (failures.get(key) ?? 0) >= ATTEMPTS) return [429, "locked"];
    const failed = (why: string): [number, string] => {
      failures.set(key, (failures.get(key) ?? 0) + 1);
      return [401, why];
    };
    const user = users[username];
    if (user === undefined) return failed("unknown user");
    if (user.disabled === true) return failed("disabled");
    await derive(String(password), "salt", 32);
    return user.password === String(password) ? [200, "welcome"] : failed("wrong password");
  }

  const server = createServer((request, response) => {
    const forwarded = String(request.headers["x-forwarded-for"] ?? "").split(",")[0];
    void json(request)
      .then((body) => answerTo(body, forwarded || String(request.socket.remoteAddress)))
      .catch((error: unknown): [number, string] => [500, String(error)])
      .then(([status, message]) => response.writeHead(status).end(JSON.stringify({ message })));
  });
  return listening(server);
}
