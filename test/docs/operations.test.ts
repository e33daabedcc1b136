/** The commands in `docs/how-to/rotate-keys.md` and `docs/operations.md` work unchanged in a shell, and their lists are complete. */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { SECTIONS } from "../../src/config/configuration.ts";
import { command } from "../cli/command.ts";
import { namedFiles } from "./checked-configuration.ts";
import { codesIn, readDocument } from "./markdown.ts";
import { cloneOfTheRepository, runLines, SALLYPORT } from "./shell-lines.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const blocks = ["docs/how-to/rotate-keys.md", "docs/operations.md"].flatMap(
  (name) => readDocument(name).blocks,
);

test(
  "keys are generated, rotated, retired, and all replaced at once",
  { timeout: 60_000 },
  async () => {
    const clone = await cloneOfTheRepository();
    const run = (wanted: RegExp): Promise<string> => runLines(SALLYPORT + shell(wanted), clone);
    const states = async (): Promise<(string | undefined)[]> => {
      const { out } = await command(["keys", "list", "--directory", join(clone, "keys")]);
      return [...out.matchAll(/^(published|signing|verifying|over) /gm)].map(([, state]) => state);
    };

    expect(await run(/keys generate --directory keys\n/)).toMatch(/^signing /m);
    expect(await run(/keys rotate/)).toMatch(/^published .*\n^signing /m);
    // Nothing has expired yet, so nothing is removed.
    await run(/keys retire --directory keys\n/);
    expect(await states()).toEqual(["published", "signing"]);
    await run(/mv new-keys keys/);
    expect(await states()).toEqual(["signing"]);
    expect(await readdir(join(clone, "keys"))).toHaveLength(1);
  },
);

test("a token is minted", async () => {
  const clone = await cloneOfTheRepository();
  await mkdir(join(clone, "keys"), { mode: 0o700 });
  await command(["keys", "generate", "--directory", join(clone, "keys")]);
  const { "tls.crt": certificate = "", "tls.key": key = "" } = await namedFiles();
  await writeFile(join(clone, "tls.crt"), certificate);
  await writeFile(join(clone, "tls.key"), key, { mode: 0o600 });
  await writeFile(
    join(clone, "config.yaml"),
    `server: { tls: { certFile: tls.crt, keyFile: tls.key } }
tokens: { keys: keys }
upstreams: { app: { targets: ["http://127.0.0.1:8080"] } }
`,
  );
  const token = (await runLines(SALLYPORT + shell(/token mint/), clone)).trim();
  const config = join(clone, "config.yaml");
  const { code, out } = await command(["token", "inspect", "--config", config, token]);
  expect(code).toBe(0);
  expect(out).toContain("nightly-export");
});

test("wherever the documents change a Secret with keys, they replace it: `apply` would leave stolen keys in it", async () => {
  const documents = ["docs", "deploy"].flatMap((folder) =>
    globSync(`${folder}/**/*.{md,txt,example}`, { cwd: REPOSITORY }),
  );
  const lines = documents.flatMap((name) =>
    readFileSync(join(REPOSITORY, name), "utf8").split("\n"),
  );
  const changing = lines.filter((line) => /create secret .*--dry-run/.test(line));
  expect(changing).toHaveLength(1);
  for (const line of changing) expect(line).toMatch(/\| kubectl replace -f -$/);
});

test("exactly the keys that are read at start are said to need a restart", () => {
  const { text } = readDocument("docs/operations.md");
  const [list = ""] = /\*\*Some keys need a restart\*\*: .*?\.\s/s.exec(text) ?? [];
  const atStart = SECTIONS.flatMap(({ atStart = [] }) => atStart).map(({ key }) => key);
  // Nobody writes the mode of `server.tls`: it follows from the other keys.
  const written = atStart.map((key) => (key === "server.tls.mode" ? "server.tls" : key));
  expect(codesIn(list).toSorted()).toEqual(written.toSorted());
});

test("the pod for the sidecar's proof is admitted under the Pod Security profile restricted", async () => {
  const lines = readDocument("docs/sidecar.md").blocks.find(({ text }) => /kubectl run/.test(text));
  // A program that prints its arguments replaces kubectl.
  const shown = join(await cloneOfTheRepository(), "kubectl");
  await writeFile(
    shown,
    '#!/bin/sh\nfor each; do case $each in --overrides=*) echo "$each";; esac; done\n',
    {
      mode: 0o755,
    },
  );
  const { PATH = "" } = process.env;
  const { stdout } = await promisify(execFile)("sh", ["-c", lines?.text ?? ""], {
    env: { PATH: `${dirname(shown)}:${PATH}` },
  });
  expect(JSON.parse(stdout.trim().replace("--overrides=", ""))).toEqual({
    spec: {
      containers: [
        {
          name: "ask",
          securityContext: {
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ["ALL"] },
            seccompProfile: { type: "RuntimeDefault" },
          },
        },
      ],
    },
  });
});

/** Returns the only block of shell commands that contains this. */
function shell(wanted: RegExp): string {
  const found = blocks.filter(({ language, text }) => language === "sh" && wanted.test(text));
  expect(found, String(wanted)).toHaveLength(1);
  return found[0]?.text ?? "";
}
