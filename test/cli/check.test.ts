import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startChild } from "../support/child.ts";
import { childCommand, command, hasTerminal, startOnTerminal } from "./command.ts";
import { entry } from "../support/entry.ts";
import { type Deployment, deployment } from "./deployment.ts";

interface Verdict {
  readonly valid: boolean;
  readonly problems: readonly {
    readonly file: string;
    readonly line?: number;
    readonly column?: number;
    readonly message: string;
    readonly hint?: string;
  }[];
  readonly routes: readonly { readonly name: string }[];
}

let shipped: Deployment;

beforeEach(async () => {
  shipped = await deployment();
});

async function verdict(
  flags: readonly string[] = shipped.flags,
): Promise<Verdict & { readonly code: number }> {
  const { code, out, err } = await command(["check", "--format", "json", ...flags]);
  expect(err).toBe("");
  return { ...(JSON.parse(out) as Verdict), code };
}

/** Returns the location of each problem. */
async function places(): Promise<string[]> {
  const { code, valid, problems, routes } = await verdict();
  expect({ code, valid, routes }).toEqual({ code: 78, valid: false, routes: [] });
  return problems.map(({ file, line, column }) =>
    [basename(file), line, column].filter((part) => part !== undefined).join(":"),
  );
}

describe("the shipped configuration with the files it names", () => {
  it("is valid, and its routes are listed in matching order", async () => {
    const { code, out, err } = await childCommand(["check", ...shipped.flags]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    // A host beats any path, then the longest path wins.
    const names = out.match(/^ {2}\w+/gm)?.map((name) => name.trim());
    expect(names).toEqual(["orders", "invoices", "docs", "app"]);
    expect(out).toContain("one group of sales,admin");
  });

  it("is valid with --format json, too", async () => {
    const { code, valid, problems, routes } = await verdict();
    expect({ code, valid, problems }).toEqual({ code: 0, valid: true, problems: [] });
    expect(routes).toMatchObject([
      { name: "orders", hosts: ["api.example.com"], groups: { any: ["sales", "admin"] } },
      { name: "invoices", path: { prefix: "/api/invoices" } },
      { name: "docs", path: { prefix: "/docs/" }, methods: ["GET", "HEAD"], auth: "none" },
      { name: "app", auth: "required", upstream: "app" },
    ]);
  });

  it("is found through SALLYPORT_CONFIG, and a flag wins over that", async () => {
    const [flag = "", file = "", ...rest] = shipped.flags;
    const found = await command(["check", ...rest], { SALLYPORT_CONFIG: file });
    expect(found.code).toBe(0);
    const overruled = await command(["check", ...shipped.flags], { SALLYPORT_CONFIG: "/none" });
    expect(overruled.code).toBe(0);
    expect((await command(["check", flag, "/none"], { SALLYPORT_CONFIG: file })).code).toBe(78);
  });
});

describe("problems", () => {
  it("in the configuration are reported all at once, with line, caret and suggestion", async () => {
    await shipped.write(
      "config.yaml",
      `server:
  listn: "0.0.0.0:8443"
  tls: { selfSigned: true }
upstreams:
  app: { targets: ["http://127.0.0.1:8080"], timeouts: { connect: 5 } }
routes:
  - { name: all, upstream: apq }
`,
    );
    const file = join(shipped.directory, "config.yaml");
    const { code, out, err } = await childCommand(["check", "--config", file]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    expect(err.split("\n").filter((line) => line.startsWith(file))).toHaveLength(3);
    expect(err).toContain(`${file}:2:3: `);
    expect(err).toContain('\n 2 |   listn: "0.0.0.0:8443"\n   |   ^ did you mean listen?\n');
    expect(err).toContain("^ did you mean app?\n");
    // No terminal, so no colour.
    expect(err).not.toContain("\u001B");

    const { problems } = await verdict(["--config", file]);
    expect(problems.map(({ line, column }) => [line, column])).toEqual([
      [2, 3],
      [5, 67],
      [7, 28],
    ]);
    expect(problems[0]).toEqual({
      file,
      line: 2,
      column: 3,
      message: expect.any(String),
      hint: "did you mean listen?",
    });
  });

  it("in the files it names are reported all at once", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const stranger = privateKey.export({ format: "pem", type: "pkcs8" });
    await shipped.write("tls.key", stranger);
    await shipped.write("users.yaml", "users:\n  bob:\n    password: plain\n  eve: {}\n");
    await shipped.write("keys/two.pem", "no key");
    await shipped.write("keys/three.json", "{}");
    await rm(join(shipped.directory, "ca.crt"));
    const written = await readFile(join(shipped.directory, "config.yaml"), "utf8");
    const line = written.split("\n").findIndex((each) => each.includes("caFile: ca.crt")) + 1;
    expect(await places()).toEqual([
      `config.yaml:${line}:20`,
      "tls.key",
      "users.yaml:3:15",
      "users.yaml:4:3",
      "three.json",
      "two.pem",
    ]);
  });

  it("include each missing file once", async () => {
    for (const name of ["tls.key", "users.yaml", "ca.crt", "keys"]) {
      await rm(join(shipped.directory, name), { recursive: true });
    }
    const { problems } = await verdict();
    expect(problems.map(({ message }) => message.split(" ")[0])).toEqual([
      "server.tls.keyFile",
      "users[0].path",
      "tokens.keys",
      "upstreams.orders.tls.caFile",
    ]);
  });

  it.each([
    ["empty", ""],
    ["not PEM", "ca"],
    ["broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
  ])("include a CA file that is %s", async (_what, content) => {
    await shipped.write("ca.crt", content);
    expect(await places()).toEqual(["ca.crt"]);
  });

  it("include an invalid key set of a trusted issuer", async () => {
    await shipped.write("jwks.json", '{"keys": 1}');
    const trusted =
      "tokens.trusted=[{issuer: 'https://id.example.com', audience: b, jwks: {file: jwks.json}, algorithms: [ES256]}]";
    const { problems } = await verdict([...shipped.flags, "--set", trusted]);
    expect(problems.map(({ file }) => basename(file))).toEqual(["jwks.json"]);
    await shipped.write("jwks.json", '{"keys": []}');
    expect((await verdict([...shipped.flags, "--set", trusted])).valid).toBe(true);
  });

  it("include a client certificate whose key does not match", async () => {
    const tls = ["caFile: ca.crt", "certFile: tls.crt", "keyFile: keys/one.pem"].join(", ");
    const flags = [...shipped.flags, "--set", `upstreams.orders.tls={${tls}}`];
    const { problems } = await verdict(flags);
    expect(problems.map(({ file }) => basename(file))).toEqual(["one.pem"]);
  });

  it("reach a slow reader completely, even a long list", async () => {
    const lines = Array.from({ length: 2_000 }, (_, index) => `key${index}: 1\n`);
    await shipped.write("config.yaml", `server: { tls: off }\n${lines.join("")}`);
    const child = spawn(process.execPath, [entry(), "check", "--format", "json", ...shipped.flags]);
    // There is more to write than the pipe holds before anything is read.
    await once(child.stdout, "readable");
    const closed = once(child, "close");
    const { problems } = JSON.parse(await text(child.stdout)) as Verdict;
    expect(problems.length).toBeGreaterThan(2_000);
    expect(await closed).toEqual([78, null]);
  });

  it("never show a secret", async () => {
    await shipped.write("users.yaml", "users:\n  bob: { password: hunter2, groups: 1 }\n");
    const ended = await command(["check", ...shipped.flags]);
    expect(ended.code).toBe(78);
    expect(ended.err).toContain("users.yaml:2:");
    expect(ended.err).not.toContain("hunter2");
    expect(JSON.stringify(await verdict())).not.toContain("hunter2");
  });

  it("include a configuration file that does not exist", async () => {
    const { code, problems } = await verdict(["--config", "/none/config.yaml"]);
    expect(code).toBe(78);
    expect(problems.map(({ file }) => file)).toEqual(["/none/config.yaml"]);
  });
});

describe.skipIf(!hasTerminal)("on a terminal (skipped without the program `script`)", () => {
  it("problems are coloured, unless NO_COLOR is set", async () => {
    const shown = (env: Record<string, string>): Promise<string> =>
      text(startOnTerminal(["check", "--config", "/none"], env).stdout);
    expect(await shown({})).toContain("\u001B[");
    expect(await shown({ NO_COLOR: "" })).toContain("\u001B[");
    const plain = await shown({ NO_COLOR: "1" });
    expect(plain).toContain("/none: ");
    expect(plain).not.toContain("\u001B");
  });
});

it("--strict makes warnings a failure", async () => {
  const directory = join(shipped.directory, "new");
  expect((await command(["init", "--directory", directory])).code).toBe(0);
  const check = async (...flags: readonly string[]): Promise<number> =>
    (await command(["check", "--config", join(directory, "config.yaml"), ...flags])).code;
  expect(await check("--strict")).toBe(0);
  await writeFile(join(directory, "users.yaml"), "users: {}\n");
  expect(await check()).toBe(0);
  expect(await check("--strict")).toBe(1);
  await rm(join(directory, "users.yaml"));
  expect(await check("--strict")).toBe(78);
});

it("--watch reports every change of the result", async () => {
  const file = join(shipped.directory, "config.yaml");
  const child = startChild(entry(), ["check", "--watch", ...shipped.flags]);
  onTestFinished(() => child.kill());
  const says = (words: string): Promise<string> =>
    child.line((line) => (line.includes(words) ? line : undefined));
  await says("is valid");
  const sound = await readFile(file, "utf8");
  await writeFile(file, `${sound}\nnonsense: 1\n`);
  await says("is not a known key");
  await writeFile(file, sound);
  // It polls twice a second, and CI is busy.
  await expect
    .poll(() => child.lines.filter((line) => line.includes("is valid")).length, { timeout: 20_000 })
    .toBe(2);
});
