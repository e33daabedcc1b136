import { startNaiveProxy } from "../../test/support/naive.ts";
import type { Subject } from "./subject.ts";

const ALICE: ReadonlyMap<string, string> = new Map([["x-auth-subject", "alice"]]);
const NOBODY: ReadonlyMap<string, string> = new Map([["x-auth-subject", "nobody"]]);

/** http-proxy-3 with its defaults, in which the fuzzer must find faults. */
export async function startNaive(backend: string): Promise<Subject> {
  const proxy = await startNaiveProxy(backend);
  let reported = false;
  return {
    port: proxy.port,
    ca: undefined,
    credentials: { valid: proxy.token, refused: ["bad"] },
    keepsContract: false,
    identity: ({ hasToken }) => (hasToken ? ALICE : NOBODY),
    troubles() {
      if (reported || !proxy.exited()) return [];
      reported = true;
      return [`the process ended: ${proxy.stderr()}`];
    },
    exited: proxy.exited,
    residentBytes: () => Promise.resolve(0),
    loop: undefined,
    alive: () => Promise.resolve(!proxy.exited()),
    [Symbol.asyncDispose]: proxy.close,
  };
}
