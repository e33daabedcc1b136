/**
 * Follows a how-to page as a newcomer does: `sallyport init`, the page's own files in place of those, and the page's own
 * commands. Only addresses and ports differ from what is written there.
 */
import { appendFile, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { childCommand } from "../../cli/command.ts";
import { readDocument } from "../../docs/markdown.ts";
import { runLines, SALLYPORT } from "../../docs/shell-lines.ts";
import { type Child, startChild } from "../../support/child.ts";
import { freePort } from "../../support/dead-ends.ts";
import { entry } from "../../support/entry.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";

/** The password of the user whom the quick start adds. */
export const PASSWORD = "correct horse battery staple";

let hashed: string | undefined;

/** Returns the line that `sallyport hash-password` prints for it. */
export async function hashOfPassword(): Promise<string> {
  hashed ??= (await childCommand(["hash-password"], { input: PASSWORD })).out.trim();
  return hashed;
}

export interface Followed {
  readonly port: number;
  readonly adminPort: number;
  /** The certificate that `init` made, for clients. */
  readonly ca: string;
  /** The directory that `init` made. */
  readonly deployment: string;
  readonly backend: EchoBackend;
  readonly proxy: Child;
  /** Runs the commands of the block of the page that begins so. */
  sh(beginning: string): Promise<string>;
  /** Runs lines that are in no page, at the same place. */
  run(lines: string): Promise<string>;
  /** Logs in with curl, and returns the token. */
  login(user: "admin" | "alice"): Promise<string>;
}

export interface Substitutes {
  /** What a reader fills in: addresses, and a password of their own. */
  readonly filled?: Readonly<Record<string, string>>;
  /** Files that the page names and does not show. Node trusts an authority in `ca.crt`, as a machine of the company would. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly env?: Readonly<Record<string, string>>;
  /** A replica with the same keys and users. */
  readonly beside?: Followed;
}

/** Returns the block of a how-to page that begins so. */
export function blockOf(page: string, beginning: string): string {
  const found = readDocument(`docs/how-to/${page}.md`).blocks.find(({ text }) =>
    text.startsWith(beginning),
  );
  expect(found, `${page}.md has a block that begins with ${beginning}`).toBeDefined();
  return found?.text ?? "";
}

/** Puts the files of a page into a deployment, and starts Sallyport there. */
export async function follow(page: string, substitutes: Substitutes = {}): Promise<Followed> {
  const { filled = {}, files = {}, env = {}, beside } = substitutes;
  const backend = await startEchoBackend();
  onTestFinished(() => backend.close());
  const place = await temporaryDirectory();
  onTestFinished(() => place.close());
  const [port, adminPort] = [await freePort(), await freePort()];
  const replaced: readonly (readonly [string, string])[] = [
    ...Object.entries(filled),
    ["http://127.0.0.1:8080", backend.url],
    [":8443", `:${port}`],
    [":9464", `:${adminPort}`],
  ];
  const here = (text: string): string =>
    replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text);

  const made = await childCommand(["init", "--yes"], { cwd: place.path });
  const [password = ""] = /(?<=PASSWORD=)\S+/.exec(made.out) ?? [];
  const deployment = join(place.path, "deployment");
  const { blocks } = readDocument("docs/quick-start.md");
  const users = blocks.find(({ text }) => text.startsWith("# users.yaml"))?.text ?? "";
  const hash = await hashOfPassword();
  const alice = users.replace(/[^]*users:\n/, "").replace(/\$argon2id\$\S+/, () => hash);
  await appendFile(join(deployment, "users.yaml"), alice);
  if (beside !== undefined) {
    for (const name of ["keys", "users.yaml"]) {
      await rm(join(deployment, name), { recursive: true });
      await cp(join(beside.deployment, name), join(deployment, name), { recursive: true });
    }
  }
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(deployment, name, ".."), { recursive: true });
    await writeFile(join(deployment, name), content, { mode: 0o600 });
  }
  for (const { text } of readDocument(`docs/how-to/${page}.md`).blocks.toReversed()) {
    const [, name] = /^# (\S+\.yaml)\n/.exec(text) ?? [];
    if (name !== undefined) await writeFile(join(deployment, name), here(text), { mode: 0o600 });
  }

  const variables = {
    ...env,
    ...("ca.crt" in files && { NODE_EXTRA_CA_CERTS: join(deployment, "ca.crt") }),
    SALLYPORT_SERVER__LISTEN: `127.0.0.1:${port}`,
    SALLYPORT_ADMIN__LISTEN: `127.0.0.1:${adminPort}`,
  };
  const serve = ["serve", "--config", join(deployment, "config.yaml")];
  const proxy = startChild(entry(), serve, variables);
  onTestFinished(() => proxy.kill());
  await proxy.line((line) => (line.includes('"admin listening"') ? line : undefined));
  const run: Followed["run"] = (lines) => {
    const exported = Object.entries(variables).map(([name, value]) => `export ${name}=${value}\n`);
    const cwd = lines.includes("deployment/") ? place.path : deployment;
    return runLines(exported.join("") + SALLYPORT + here(lines), cwd);
  };
  return {
    port,
    adminPort,
    ca: await readFile(join(deployment, "tls.crt"), "utf8"),
    deployment,
    backend,
    proxy,
    run,
    sh: (beginning) => run(blockOf(page, beginning)),
    async login(user) {
      const body = { username: user, password: user === "admin" ? password : PASSWORD };
      const answer = await run(
        `curl -sS --cacert deployment/tls.crt https://localhost:8443/api/authenticate --json '${JSON.stringify(body)}'`,
      );
      return String((JSON.parse(answer) as { token?: string }).token);
    },
  };
}
