import { generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { testCertificates } from "../support/certificates.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { DEPLOY } from "./documents.ts";
import { type Manifest, readManifests } from "./manifests.ts";

export const EXAMPLE = join(DEPLOY, "kubernetes/plain/secrets.yaml.example");

/** Returns the Secrets of the example with their placeholders. */
export async function exampleSecrets(): Promise<Manifest[]> {
  return readManifests(await readFile(EXAMPLE, "utf8"));
}

/** Returns the files that the example's commands read, by path; with them, alice can log in. */
export async function secretFiles(): Promise<Readonly<Record<string, string>>> {
  const { server } = await testCertificates();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    "users.yaml": JSON.stringify({
      users: { [ALICE.username]: { password: cheapHash(ALICE.password), groups: ["sales"] } },
    }),
    "tls.crt": server.cert,
    "tls.key": server.key,
    "keys/2026-11.jwk": JSON.stringify(privateKey.export({ format: "jwk" })),
  };
}

/** Returns the Secrets of the example with each placeholder replaced. */
export async function filledSecrets(): Promise<Manifest[]> {
  const files = await secretFiles();
  const secrets = await exampleSecrets();
  return secrets.map((secret) => {
    if (secret.kind !== "Secret") throw new Error("the example holds something that is no Secret");
    const names = Object.keys(secret.stringData ?? {});
    return {
      ...secret,
      stringData: Object.fromEntries(
        names.map((name) => [name, files[name] ?? files[`keys/${name}`] ?? ""]),
      ),
    };
  });
}
