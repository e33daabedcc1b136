/**
 * Creates what all test files of a run share, once before the first: the bundle of Sallyport, its compiled code from
 * V8, and the certificates. vitest runs it. Where it has not run, such as in `soak`, each process creates its own.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildInto } from "./build.ts";
import { CERTIFICATES, makeCertificates } from "./certificates.ts";
import { BUILT, COMPILED } from "./entry.ts";
import { startSallyport } from "./sallyport.ts";

export default async function makeOnce(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "sallyport-run-"));
  // Some tests start it as another user.
  await chmod(directory, 0o755);
  await Promise.all([
    build(join(directory, "dist")),
    certify(join(directory, "certificates.json")),
  ]);
  await compileInto(join(directory, "compiled"));
  return () => rm(directory, { recursive: true, force: true });
}

async function build(directory: string): Promise<void> {
  if (process.env["SALLYPORT_ENTRY"] !== undefined) return;
  await buildInto(directory);
  process.env[BUILT] = join(directory, "main.js");
}

/**
 * Lets V8 compile the bundle once for all starts, which makes each a tenth cheaper. Node writes the compiled code when
 * a process exits normally, but most processes that tests start are killed.
 */
async function compileInto(directory: string): Promise<void> {
  process.env[COMPILED] = directory;
  const sallyport = await startSallyport({ target: "http://127.0.0.1:9" });
  await sallyport.stop();
  await sallyport.close();
}

async function certify(file: string): Promise<void> {
  await writeFile(file, JSON.stringify(await makeCertificates()));
  process.env[CERTIFICATES] = file;
}
