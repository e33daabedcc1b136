/** The examples of docs/assertion.md accept assertions of a running Sallyport, and refuse everything else. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDocument } from "../docs/markdown.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const run = promisify(execFile);
const document = readDocument("docs/assertion.md");

let backend: EchoBackend;
let gate: Sallyport;
let directory: TemporaryDirectory;
let assertion: string;
beforeAll(async () => {
  backend = await startEchoBackend();
  const assertions = { audience: "orders-backend", lifetime: "60s" };
  const routes = [{ name: "all", path: "/", upstream: "app", assertion: true }];
  gate = await startSallyport({
    target: backend.url,
    config: { tokens: { assertion: assertions }, routes },
  });
  directory = await temporaryDirectory();
  const answer = await ask(gate, "/orders", { token: gate.token });
  assertion = echoedBy(answer).header("x-auth-assertion") ?? "";
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), directory.close()]);
});

function example(language: string): string {
  const code = document.blocks.find((block) => block.language === language)?.text ?? "";
  expect(code).toContain("http://127.0.0.1:9464/");
  return code.replace("http://127.0.0.1:9464/", `http://127.0.0.1:${gate.adminPort}/`);
}

/** Returns invalid assertions: a wrong signature, a user's token, no signature, garbage. */
function refused(): string[] {
  const [head = "", claims = "", signature = ""] = assertion.split(".");
  const other = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  return [`${head}.${claims}.${other}`, gate.token, `${head}.${claims}.`, "x"];
}

async function verdicts(command: string, args: readonly string[]): Promise<unknown[]> {
  const shown = [assertion, ...refused()];
  const { stdout } = await run(command, [...args, ...shown], { timeout: 30_000 });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

const EXPECTED = [
  expect.objectContaining({ sub: "alice", groups: ["sales"], idp: "sallyport" }),
  ...["refused", "refused", "refused", "refused"],
];

describe("the example in", () => {
  test("Node", async () => {
    const script = await directory.write(
      "example.mjs",
      `${example("js").replace('"jose"', JSON.stringify(import.meta.resolve("jose")))}
for (const shown of process.argv.slice(2)) {
  console.log(JSON.stringify(await callerOf(shown).catch(() => "refused")));
}`,
    );
    expect(await verdicts(process.execPath, [script])).toEqual(EXPECTED);
  });

  test("Python", async () => {
    const script = await directory.write(
      "example.py",
      `${example("python")}
import json, sys
for shown in sys.argv[1:]:
    try:
        print(json.dumps(caller_of(shown)))
    except jwt.PyJWTError:
        print(json.dumps("refused"))
`,
    );
    // The distribution's Python, which has the library.
    expect(await verdicts("/usr/bin/python3", [script])).toEqual(EXPECTED);
  });
});
