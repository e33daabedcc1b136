import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tlsOf, upstreamsOf } from "../../src/app/from-files.ts";
import { namedFiles, SnapshotFiles, takeSnapshot } from "../../src/config/snapshot.ts";
import { ConfigError } from "../../src/core/config-problem.ts";
import { testCertificates } from "../support/certificates.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** A configuration with every key that names a file. */
const ALL = {
  server: {
    tls: {
      certFile: "tls.crt",
      keyFile: "tls.key",
      clientCertificates: { mode: "optional", caFile: "ca.crt" },
    },
  },
  users: [{ kind: "file", path: "users.yaml" }],
  tokens: {
    keys: "keys",
    trusted: [{ issuer: "a", audience: "b", jwks: { file: "set.json" }, algorithms: ["ES256"] }],
  },
  version: { file: "version" },
  upstreams: {
    app: {
      targets: ["https://h"],
      tls: { caFile: "app-ca.crt", certFile: "app.crt", keyFile: "app.key" },
    },
  },
};

async function place(config: object) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const file = await directory.write("config.yaml", JSON.stringify(config));
  const { ca, server } = await testCertificates();
  const files = { "tls.crt": server.cert, "tls.key": server.key, "ca.crt": ca };
  for (const [name, content] of Object.entries(files)) await directory.write(name, content);
  return {
    at: (name: string) => join(directory.path, name),
    path: directory.path,
    sources: { file, env: {}, overrides: {} },
    certificates: { ca, server },
  };
}

test("every key with a path is listed, with the way its file is used", async () => {
  const { sources, path } = await place(ALL);
  const { configuration } = await takeSnapshot(sources);
  const found = namedFiles(configuration).map(({ key, path: file, use }) =>
    [key.join("."), file.slice(path.length + 1), use.readAgainBy, use.secret ? "secret" : ""].join(
      " ",
    ),
  );
  expect(found).toEqual([
    "server.tls.certFile tls.crt reload ",
    "server.tls.keyFile tls.key reload secret",
    "server.tls.clientCertificates.caFile ca.crt reload ",
    "users.0.path users.yaml reader secret",
    "tokens.keys keys reader ",
    "tokens.trusted.0.jwks.file set.json reader ",
    "version.file version request ",
    "upstreams.app.tls.caFile app-ca.crt reload ",
    "upstreams.app.tls.certFile app.crt reload ",
    "upstreams.app.tls.keyFile app.key reload secret",
  ]);
});

const WITH_FILES = {
  server: ALL.server,
  upstreams: {
    app: {
      targets: ["https://h"],
      tls: { caFile: "ca.crt", certFile: "tls.crt", keyFile: "tls.key" },
    },
  },
};

test.each([
  ["1.5 MiB", 1.5, true],
  ["more than 8 MiB", 8.1, false],
])("a users file may hold 8 MiB: %s", async (_size, mebibytes, read) => {
  const { sources, at } = await place({ ...WITH_FILES, users: ALL.users });
  await writeFile(at("users.yaml"), `${"#".repeat(mebibytes * 1024 ** 2)}\nusers: {}\n`);
  const { configuration, files } = await takeSnapshot(sources);
  const named = namedFiles(configuration).filter(({ path }) => path === at("users.yaml"));
  expect(named.map((each) => files.has(each))).toEqual([read]);
});

test("a snapshot returns what it has read, whatever happens to the files afterwards", async () => {
  const { sources, at, certificates } = await place(WITH_FILES);
  const { configuration, files, followed } = await takeSnapshot(sources);
  await writeFile(at("tls.crt"), certificates.ca);
  await rm(at("tls.key"));
  await namedPipe(at("tls.key"));
  await rm(at("ca.crt"));
  const { ca, server } = certificates;
  expect(await tlsOf(configuration, files.text, recordedLog())).toMatchObject({
    ...server,
    clientCertificates: { authorities: ca },
  });
  expect(upstreamsOf(configuration, files.text)).toMatchObject([{ tls: { ca, ...server } }]);
  expect([...followed.keys()].toSorted()).toEqual(
    ["ca.crt", "config.yaml", "tls.crt", "tls.key"].map(at),
  );
});

test("all errors in files are reported at once, missing files with their key", async () => {
  const { sources, at } = await place(WITH_FILES);
  await rm(at("ca.crt"));
  await writeFile(at("tls.crt"), "x".repeat(1024 ** 2 + 1));
  const { configuration, files, missing } = await takeSnapshot(sources);
  expect(missing.map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^server\.tls\.clientCertificates\.caFile names a file that does not exist: \//,
    ),
    expect.stringMatching(/^upstreams\.app\.tls\.caFile names a file that does not exist: \//),
  ]);
  const problems = problemsOf(() => upstreamsOf(configuration, files.text));
  expect(problems).toEqual([
    missing[1],
    { file: at("tls.crt"), message: "cannot be read (larger than 1MiB: is it the right file?)" },
  ]);
});

function problemsOf(make: () => unknown) {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test("a file is read once, even if `${file:…}` and a key both name it", async () => {
  const { at } = await place(WITH_FILES);
  const files = new SnapshotFiles();
  const before = files.readNow(at("tls.crt"));
  await writeFile(at("tls.crt"), "another");
  expect(files.readNow(at("tls.crt"))).toBe(before);
  const use = { kind: "file", readAgainBy: "reload", secret: false } as const;
  await files.read([{ key: [], path: at("tls.crt"), use }]);
  expect(files.content(at("tls.crt"))).toBe(before);
});

test("files in use until a restart are read, too, and may be missing", async () => {
  const { sources, at } = await place(WITH_FILES);
  const first = await takeSnapshot(sources);
  await rm(at("tls.crt"));
  const written = {
    ...WITH_FILES,
    server: { tls: "off" },
    upstreams: { app: { targets: ["http://h"] } },
  };
  await writeFile(sources.file, JSON.stringify(written));
  const inForce = { configuration: first.configuration, seen: first.files.seen() };
  const next = await takeSnapshot(sources, inForce);
  expect(next.missing).toEqual([]);
  expect(next.written.server.tls).toEqual({ mode: "off" });
  expect(next.configuration.server.tls).toEqual(first.configuration.server.tls);
  expect(next.followed.get(at("tls.crt"))).toBeUndefined();
  expect(next.followed.has(at("tls.crt"))).toBe(true);
  expect(next.followed.get(at("tls.key"))).toBe(first.followed.get(at("tls.key")));
});
