/**
 * Users of other proxies copy the files in `docs/migration/<name>/after…`: `check` accepts them, they name no file that
 * is not mentioned anywhere, and every directory of files is explained in the guide of the same name.
 */
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { checked, namedFiles } from "./checked-configuration.ts";
import { readDocument, ROOT } from "./markdown.ts";
import { cloneOfTheRepository, runLines, SALLYPORT } from "./shell-lines.ts";

const MIGRATION = join(ROOT, "docs/migration");
const names = [
  "authelia",
  "ingress-nginx",
  "kube-rbac-proxy",
  "nginx-auth-request",
  "oauth2-proxy",
  "traefik-forward-auth",
];
const configurations = globSync("*/after*/config.yaml", { cwd: MIGRATION });

test("each proxy has a guide, and files from before and after", () => {
  const directories = readdirSync(MIGRATION, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect(directories.toSorted()).toEqual(names);
  for (const name of names) {
    expect(existsSync(join(MIGRATION, `${name}.md`))).toBe(true);
    expect(readdirSync(join(MIGRATION, name, "before"))).not.toEqual([]);
    expect(configurations).toContain(join(name, "after/config.yaml"));
  }
});

test.each(configurations)("%s passes the check together with its files", async (file) => {
  const files = { ...(await namedFiles()), ...besides(file) };
  expect(await checked(textOf(file), files)).toMatchObject({ code: 0, err: "" });
});

test.each(configurations)("%s is refused if what its routes need is missing", async (file) => {
  const broken = textOf(file)
    .replace("upstream: app", "upstream: ap")
    // Without upstreams: nobody may ask.
    .replace(/from: \[.*?\]/, "from: []");
  const files = { ...(await namedFiles()), ...besides(file) };
  expect(await checked(broken, files)).toMatchObject({ code: 78 });
});

test.each(names.filter((name) => name !== "kube-rbac-proxy"))(
  "%s: the commands that hold for every guide create the missing files",
  { timeout: 60_000 },
  async (name) => {
    const clone = await cloneOfTheRepository();
    const { "tls.crt": certificate, "tls.key": key, "oidc-secret": secret } = await namedFiles();
    const files = {
      ...besides(`${name}/after/config.yaml`),
      "tls.crt": certificate,
      "tls.key": key,
      "oidc-secret": secret,
    };
    const all = { ...files, "config.yaml": textOf(`${name}/after/config.yaml`) };
    for (const [file, text = ""] of Object.entries(all)) await writeFile(join(clone, file), text);
    const [lines = "", ...more] = [name, "README"]
      .flatMap((page) => readDocument(`docs/migration/${page}.md`).blocks)
      .map(({ text }) => text)
      .filter((text) => text.includes("keys generate"));
    expect(more).toEqual([]);
    const printed = await runLines(SALLYPORT + lines, clone);
    expect(printed).toContain("is valid");
    expect(printed).not.toMatch(/users\.yaml: can be read|key is made/);
  },
);

describe.each(names)("%s", (name) => {
  test("every file is linked from the guide", () => {
    const files = globSync(`${name}/*/*`, { cwd: MIGRATION });
    expect(files.length).toBeGreaterThan(2);
    const linked = [...readDocument(`docs/migration/${name}.md`).text.matchAll(/\]\(([^)#]+)\)/g)];
    const targets = linked.map(([, target]) => target);
    expect(files.filter((file) => !targets.includes(file))).toEqual([]);
  });

  test("the guide lists settings that do not carry over, and names the page about all proxies", () => {
    const { text } = readDocument(`docs/migration/${name}.md`);
    expect(text).toContain("](README.md)");
    expect(text).toMatch(/^## What does not carry over$/m);
  });

  test("every YAML file can be parsed", () => {
    for (const file of globSync(`${name}/*/*.yaml`, { cwd: MIGRATION })) {
      const problems = parseAllDocuments(textOf(file)).flatMap(({ errors }) => errors);
      expect(problems, file).toEqual([]);
    }
  });
});

test("the users files of Authelia and of its guide have the same hashes and groups", () => {
  const [before, after] = ["before/users_database.yml", "after/users.yaml"].map((file) => {
    const { users }: { users: Record<string, Record<string, unknown>> } = parse(
      textOf(`authelia/${file}`),
    );
    return Object.entries(users).map(([name, { password, groups }]) => [name, password, groups]);
  });
  expect(before).toHaveLength(2);
  expect(after).toEqual(before);
});

test("htpasswd and the users file have the same hashes", () => {
  const before = textOf("oauth2-proxy/before/htpasswd").trim().split("\n");
  const after = textOf("oauth2-proxy/after/users.yaml");
  const [document] = parseAllDocuments(after);
  const told = before.map((line) => {
    const [name = "", hash] = line.split(":");
    return [hash, document?.getIn(["users", name, "password"])];
  });
  expect(told).toHaveLength(3);
  for (const [hash, password] of told) expect(password).toBe(hash);
});

function textOf(file: string): string {
  return readFileSync(join(MIGRATION, file), "utf8");
}

/** Returns the other files next to a configuration. */
function besides(file: string): Record<string, string> {
  const directory = dirname(file);
  const others = readdirSync(join(MIGRATION, directory)).filter((name) => name !== "config.yaml");
  return Object.fromEntries(others.map((name) => [name, textOf(join(directory, name))]));
}
