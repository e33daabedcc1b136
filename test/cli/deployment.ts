import { generateKeyPairSync } from "node:crypto";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { testCertificates } from "../support/certificates.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

export interface Deployment {
  readonly directory: string;
  /** Flags for the shipped configuration, with every file it names next to it. */
  readonly flags: readonly string[];
  /** Replaces one of the files. */
  write(name: string, content: string): Promise<void>;
}

/** Copies the shipped `config.yaml` into a new directory, with every file it names. */
export async function deployment(): Promise<Deployment> {
  const temporary = await temporaryDirectory();
  onTestFinished(() => temporary.close());
  const directory = temporary.path;
  const write = (name: string, content: string): Promise<void> =>
    writeFile(join(directory, name), content);
  const { ca, server } = await testCertificates();
  await copyFile(new URL("../../config.yaml", import.meta.url), join(directory, "config.yaml"));
  await write("tls.crt", server.cert);
  await write("tls.key", server.key);
  await write("ca.crt", ca);
  const password = cheapHash(ALICE.password);
  await write("users.yaml", JSON.stringify({ users: { [ALICE.username]: { password } } }));
  await mkdir(join(directory, "keys"));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await write("keys/one.pem", privateKey.export({ format: "pem", type: "pkcs8" }));
  await mkdir(join(directory, "assertion-keys"));
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  await write("assertion-keys/one.pem", own.export({ format: "pem", type: "pkcs8" }));
  return {
    directory,
    // The shipped file names these with absolute paths.
    flags: [
      ...["--config", join(directory, "config.yaml")],
      ...["--set", "server.tls.certFile=tls.crt"],
      ...["--set", "server.tls.keyFile=tls.key"],
      ...["--set", "tokens.keys=keys"],
      ...["--set", "tokens.assertion.keys=assertion-keys"],
    ],
    write,
  };
}
