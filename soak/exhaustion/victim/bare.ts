import { testCertificates } from "../../../test/support/certificates.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { ownCore } from "./own-core.ts";
import { startBackend } from "./start-backend.ts";
import type { Victim, VictimOptions } from "./victim.ts";

/**
 * Starts a bare Node server that answers like the backends and is attacked instead of Sallyport, to show what the same attack
 * does to Node and to the machine. Resolves when it listens.
 */
export async function startBare({ tls }: Pick<VictimOptions, "tls">): Promise<Victim> {
  await using undo = new AsyncDisposableStack();
  const directory = undo.use(await temporaryDirectory());
  const { ca, server } = await testCertificates();
  const files = [
    await directory.write("tls.crt", server.cert),
    await directory.write("tls.key", server.key),
  ] as const;
  const [attacked, calm] = await Promise.all([startBackend(files, ownCore([])), startBackend()]);
  for (const { program } of [attacked, calm]) undo.defer(() => program.kill());
  let ended: string | undefined;
  void attacked.program.ended.then((code) => (ended = String(code)));
  const stack = undo.move();
  return {
    pid: attacked.program.pid,
    port: tls ? (attacked.securePort ?? 0) : attacked.port,
    adminPort: attacked.port,
    calmPort: calm.port,
    ca,
    ended: () => ended,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
