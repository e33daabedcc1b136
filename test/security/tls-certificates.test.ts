/**
 * A certificate that protects no one. A key of 1024 bits can be factored, a key file that everyone on the machine can
 * read is not a secret, an expired certificate teaches people to ignore warnings, and the first client finds out that
 * certificate and key do not match. All of it is known at the start, so that is when it must be reported: unsafe or
 * unusable certificates are refused, with the file and the reason, and there are warnings about the rest. Node by
 * default reports nothing, or not which file.
 */
import { generateKeyPairSync } from "node:crypto";
import { chmod, rm, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { createSecureContext } from "node:tls";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isExposed } from "../../src/lib/files/private-file.ts";
import { certificateWarnings } from "../../src/server/tls/certificate.ts";
import { command } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { clientAuthority } from "../support/client-certificates.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const { server, ca } = await testCertificates();
const authority = await clientAuthority();
const DAY_MS = 86_400_000;

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await temporaryDirectory();
  await directory.write("ca.crt", ca);
  await directory.write("users.yaml", "users: {}\n");
  await chmod(join(directory.path, "users.yaml"), 0o600);
});
afterAll(() => directory.close());

const chain = (...certificates: readonly string[]): string => certificates.join("\n");

interface Verdict {
  readonly problems: readonly { readonly file: string; readonly message: string }[];
  readonly warnings: readonly {
    readonly about: string;
    readonly file: string;
    readonly message: string;
    readonly urgent: boolean;
  }[];
}

/** Returns what `check` reports for a configuration with this pair. */
async function checked(
  cert: string,
  key: string,
  more: Record<string, unknown> = {},
): Promise<Verdict & { readonly code: number }> {
  await directory.write("tls.crt", cert);
  await chmod(await directory.write("tls.key", key), 0o600);
  const tls = { certFile: "tls.crt", keyFile: "tls.key", ...more };
  const configuration = {
    server: { tls },
    users: [{ kind: "file", path: "users.yaml" }],
    upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
  };
  const file = await directory.write("config.yaml", JSON.stringify(configuration));
  const { code, out } = await command(["check", "--format", "json", "--config", file]);
  const verdict = JSON.parse(out) as Verdict;
  return { ...verdict, warnings: ofFiles(verdict), code };
}

/** Without users and keys, about which it also warns. */
function ofFiles({ warnings }: Partial<Verdict>): Verdict["warnings"] {
  return (warnings ?? []).filter(({ about }) => about === "files");
}

async function rsa(bits: 1024 | 2048): Promise<{ key: string; cert: string }> {
  const made = await generate([{ name: "commonName", value: "localhost" }], {
    keySize: bits,
    algorithm: "sha256",
  });
  return { key: made.private, cert: made.cert };
}

async function signedWithSha1(): Promise<{ key: string; cert: string }> {
  const named = (value: string) => [{ name: "commonName", value }];
  const authorities = await generate(named("authority"), { algorithm: "sha256" });
  const made = await generate(named("localhost"), {
    algorithm: "sha1",
    ca: { key: authorities.private, cert: authorities.cert },
  });
  return { key: made.private, cert: made.cert };
}

describe("refused before anything starts, naming the file", () => {
  it.each<[string, () => Promise<[cert: string, key: string]>, string]>([
    [
      "a key of another certificate",
      async () => [server.cert, (await authority.certificate()).key],
      "tls.key",
    ],
    [
      "an RSA key of 1024 bits",
      async () => {
        const { cert, key } = await rsa(1024);
        return [cert, key];
      },
      "tls.key",
    ],
    [
      "a chain that begins with the CA",
      async () => [chain(ca, server.cert), server.key],
      "tls.crt",
    ],
    ["a chain without a line break", async () => [server.cert + ca, server.key], "tls.crt"],
    [
      "a chain with a broken certificate",
      async () => [chain(server.cert, ca.replace("MII", "MIJ")), server.key],
      "tls.crt",
    ],
    [
      "a key for agreement only",
      async () => [
        server.cert,
        generateKeyPairSync("x25519").privateKey.export({ format: "pem", type: "pkcs8" }),
      ],
      "tls.key",
    ],
  ])("%s", async (_name, make, file) => {
    const verdict = await checked(...(await make()));
    expect(verdict.code).toBe(78);
    expect(verdict.problems.map((problem) => basename(problem.file))).toEqual([file]);
  });

  it("a signature with SHA-1", async () => {
    const { cert, key } = await signedWithSha1();
    const verdict = await checked(cert, key);
    expect([verdict.code, verdict.problems.map(({ file }) => basename(file))]).toEqual([
      78,
      ["tls.crt"],
    ]);
  });

  it.each([
    ["that does not exist", undefined],
    ["that is empty", ""],
    ["that is not a certificate", "secret text"],
  ])("a file of clients' authorities %s", async (_name, content) => {
    const file = join(directory.path, "clients.crt");
    await rm(file, { force: true });
    if (content !== undefined) await directory.write("clients.crt", content);
    const clientCertificates = { mode: "required", caFile: "clients.crt" };
    const verdict = await checked(server.cert, server.key, { clientCertificates });
    expect([verdict.code, verdict.problems.length]).toEqual([78, 1]);
    expect(JSON.stringify(verdict)).not.toContain("secret text");
  });
});

describe("accepted", () => {
  it("RSA of 2048 bits, and a chain in order", async () => {
    const { cert, key } = await rsa(2048);
    expect(await checked(cert, key)).toMatchObject({ code: 0, warnings: [] });
    expect(await checked(chain(server.cert, ca), server.key)).toMatchObject({
      code: 0,
      warnings: [],
    });
  });
});

describe("accepted with a warning", () => {
  it.each<[string, readonly [number, number], boolean | undefined]>([
    ["that has expired", [-30, -1], true],
    ["that is not valid yet", [1, 30], true],
    ["that expires within 7 days", [-1, 6.5], true],
    ["that expires within 30 days", [-1, 29.5], false],
    ["that expires later", [-1, 30.5], undefined],
  ])("a certificate %s", async (_name, days, urgent) => {
    const { cert, key } = await authority.certificate({ usage: "serverAuth", days });
    const verdict = await checked(cert, key);
    expect([verdict.code, verdict.warnings.map((warning) => warning.urgent)]).toEqual([
      0,
      urgent === undefined ? [] : [urgent],
    ]);
  });

  it("an expired intermediate, and a chain with a gap", async () => {
    const ended = await authority.certificate({ days: [-30, -1] });
    const concerns = certificateWarnings(chain(server.cert, ended.cert), Date.now());
    expect(concerns.map(({ urgent }) => urgent)).toEqual([false, true]);
    expect(certificateWarnings(chain(server.cert, ca), Date.now())).toEqual([]);
    expect(certificateWarnings(chain(server.cert, ca), Date.now() + 4000 * DAY_MS)).toHaveLength(2);
  });

  it("keys and users that others can read, also through links", async () => {
    await checked(server.cert, server.key);
    const key = join(directory.path, "tls.key");
    const warned = async (): Promise<string[]> => {
      const { out } = await command([
        ...["check", "--format", "json", "--config", join(directory.path, "config.yaml")],
      ]);
      return ofFiles(JSON.parse(out) as Verdict).map(({ file }) => basename(file));
    };
    await chmod(key, 0o604);
    expect(await warned()).toEqual(["tls.key"]);
    await chmod(key, 0o640);
    expect(await warned()).toEqual(["tls.key"]);
    await chmod(key, 0o600);
    expect(await warned()).toEqual([]);
    // Like a Secret in Kubernetes: a link through `..data`.
    const users = await directory.write("real-users.yaml", "users: {}\n");
    await chmod(users, 0o644);
    await rm(join(directory.path, "users.yaml"));
    await symlink("real-users.yaml", join(directory.path, "users.yaml"));
    expect(await warned()).toEqual(["users.yaml"]);
  });

  it("a file of another user may be readable by its group, since that is how we read it", () => {
    const own = process.getuid?.() ?? 0;
    const exposed = (mode: number, uid: number): boolean =>
      isExposed({ mode: 0o100_000 | mode, uid });
    expect([0o600, 0o400, 0o700].map((mode) => exposed(mode, own))).toEqual(Array(3).fill(false));
    expect([0o640, 0o604, 0o620].map((mode) => exposed(mode, own))).toEqual(Array(3).fill(true));
    expect([0o440, 0o640].map((mode) => exposed(mode, own + 1))).toEqual(Array(2).fill(false));
    expect([0o444, 0o644, 0o441].map((mode) => exposed(mode, own + 1))).toEqual(
      Array(3).fill(true),
    );
  });
});

describe("served anyway", () => {
  it("an expired certificate: log, metric and check report it", async () => {
    const days = [-30, -1] as const;
    const ended = await authority.certificate({ usage: "serverAuth", days });
    const { cert, key } = ended;
    await using gate = await startSallyport({
      withoutToken: true,
      target: "http://127.0.0.1:1",
      config: { server: { tls: { certFile: "old.crt", keyFile: "old.key" } } },
      files: { "old.crt": cert, "old.key": key },
      insecure: true,
    });
    const errors = gate.log().filter(({ level }) => level === "error");
    expect(errors.map(({ file }) => basename(String(file)))).toEqual(["old.crt"]);
    const warnings = gate.log().filter(({ level }) => level === "warn");
    const files = warnings.map(({ file }) => basename(String(file)));
    expect(files).toEqual(expect.arrayContaining(["old.key", "users.yaml"]));
    const metric = "sallyport_tls_certificate_not_after_timestamp_seconds";
    const end = (await scrape(gate)).value(metric) ?? Number.NaN;
    expect(Math.abs(end * 1000 - (Date.now() - DAY_MS))).toBeLessThan(120_000);
  });
});

it("Node by default accepts most of it silently, and does not name the file of the rest", async () => {
  const ended = await authority.certificate({ usage: "serverAuth", days: [-30, -1] });
  const weak = { ...(await rsa(1024)), ciphers: "DEFAULT:@SECLEVEL=0" };
  const authorities = { ...server, ca: "secret text" };
  for (const taken of [ended, await signedWithSha1(), weak, authorities]) {
    expect(() => createSecureContext(taken)).not.toThrow();
  }
  const mismatch = () => createSecureContext({ cert: server.cert, key: ended.key });
  expect(mismatch).toThrow(/^error:[^/]*:key values mismatch$/);
});
