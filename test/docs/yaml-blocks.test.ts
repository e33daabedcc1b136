/**
 * Every YAML block of the documents is what it says it is: its first line names the file. A configuration passes `check`
 * beside the files that it names, a users file can be read, and a Kubernetes manifest brings a whole deployment.
 */
import { generateKeyPairSync } from "node:crypto";
import { globSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { readUsersFile } from "../../src/credentials/users-file.ts";
import { command } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { readDocument, ROOT } from "./markdown.ts";

const blocks = globSync("*.md", { cwd: ROOT }).flatMap((name) =>
  readDocument(name)
    .blocks.filter(({ language }) => language === "yaml" || language === "yml")
    .map(({ text }) => ({ name, file: /^# (\S+)\n/.exec(text)?.[1], text })),
);

function blocksOf(file: string): readonly (readonly [string, string])[] {
  const found = blocks.filter((block) => block.file === file);
  return found.map(({ name, text }, index) => [`${name}, ${file} ${index + 1}`, text]);
}

test("every block says which file it is", () => {
  const known = ["config.yaml", "users.yaml", "kubernetes.yaml"];
  expect(blocks.filter(({ file = "" }) => !known.includes(file))).toEqual([]);
  for (const file of known) expect(blocksOf(file)).not.toEqual([]);
});

test.each(blocksOf("config.yaml"))("%s passes the check", async (_name, text) => {
  const files = await namedFiles();
  expect(await checked(text, files)).toEqual({ code: 0, err: "" });
});

test("the first configuration has ten lines at most", () => {
  const [, text = ""] = blocksOf("config.yaml")[0] ?? [];
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test.each(blocksOf("users.yaml"))("%s can be read", (_name, text) => {
  expect(readUsersFile(Buffer.from(text), "users.yaml").size).toBeGreaterThan(0);
});

test.each(blocksOf("kubernetes.yaml"))(
  "%s brings what its configuration names",
  async (_n, text) => {
    const documents = parseAllDocuments(text);
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    const [configMap, deployment] = documents;
    const configuration = String(configMap?.getIn(["data", "config.yaml"]));
    const files = await namedFiles();
    const brought = Object.fromEntries(
      mountedPaths(deployment?.toJS()).map((path) => [path, contentFor(path, files)]),
    );
    expect(await checked(configuration, brought)).toEqual({ code: 0, err: "" });

    const sidecar = ["spec", "template", "spec", "initContainers", 0];
    expect(deployment?.getIn([...sidecar, "restartPolicy"])).toBe("Always");
    expect(deployment?.getIn([...sidecar, "securityContext", "runAsUser"])).toBe(65_532);
    expect(deployment?.getIn([...sidecar, "securityContext", "readOnlyRootFilesystem"])).toBe(true);
  },
);

type Files = Readonly<Record<string, string>>;

/** What the configurations of the documents name, as they name it. */
async function namedFiles(): Promise<Files> {
  const { server } = await testCertificates();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    "tls.crt": server.cert,
    "tls.key": server.key,
    "users.yaml": JSON.stringify({ users: { alice: { password: cheapHash("a") } } }),
    "keys/2026-11.pem": privateKey.export({ format: "pem", type: "pkcs8" }),
  };
}

interface Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly volumes: readonly {
          readonly projected: {
            readonly sources: readonly {
              readonly secret?: { readonly items: readonly { readonly path: string }[] };
            }[];
          };
        }[];
      };
    };
  };
}

/** Where the files of the Secrets stand, seen from the configuration. */
function mountedPaths({ spec }: Manifest): string[] {
  const sources = spec.template.spec.volumes.flatMap(({ projected }) => projected.sources);
  return sources.flatMap(({ secret }) => secret?.items.map(({ path }) => path) ?? []);
}

/** The content of a file that a manifest puts elsewhere, by the last part of its path. */
function contentFor(path: string, files: Files): string {
  const found = Object.entries(files).find(([name]) => name.endsWith(path.replace(/^.*\//, "")));
  if (found === undefined) throw new Error(`no test content for ${path}`);
  return found[1];
}

async function checked(text: string, files: Files): Promise<{ code: number; err: string }> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  for (const [name, content] of Object.entries({ ...files, "config.yaml": text })) {
    const file = join(directory.path, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o600 });
  }
  const { code, err } = await command(["check", "--config", join(directory.path, "config.yaml")]);
  return { code, err };
}
