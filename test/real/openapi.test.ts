/** A client that openapi-typescript generates from the description: it compiles, logs in and reads the version. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT } from "../docs/markdown.ts";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { missing, runProgram } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

/**
 * Not development dependencies: they take 45 MB, half of it the compiler that the generator needs, which is older than
 * that of the repository.
 */
const PACKAGES = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"];
const INSTALL_MS = 110_000;

const CLIENT = `
import createClient from "openapi-fetch";
import type { paths } from "./api.ts";

const [, , baseUrl = "", username = "", password = ""] = process.argv;
const client = createClient<paths>({ baseUrl });
const login = await client.POST("/api/authenticate", { body: { username, password } });
if (login.error !== undefined) throw new Error(login.error.message);
const token: string = login.data.token;
const headers = { Authorization: \`Bearer \${token}\` };
const { data, error } = await client.GET("/api/v1/version", { headers });
if (error !== undefined) throw new Error(error.message);
const version: string = data.version;
const refused = await client.GET("/api/v1/version");
const success: false | undefined = refused.error?.success;
console.log(JSON.stringify({ version, status: refused.response.status, success }));
`;
/** Each of these lines is an error that the types find. */
const MISTAKES = `
import createClient from "openapi-fetch";
import type { paths } from "./api.ts";
const client = createClient<paths>({});
// @ts-expect-error the password is missing
await client.POST("/api/authenticate", { body: { username: "alice" } });
// @ts-expect-error there is no such endpoint
await client.GET("/api/v2/version");
const { data } = await client.GET("/api/version");
// @ts-expect-error there is no such field
console.log(data?.token);
`;
const COMPILER_OPTIONS = {
  target: "es2024",
  module: "nodenext",
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  types: ["node"],
  typeRoots: [join(ROOT, "node_modules/@types")],
};

const stack = new AsyncDisposableStack();
let directory: TemporaryDirectory;
let backend: EchoBackend;
let gate: Sallyport;
/** Why nothing can be tested, if so. */
let reason = missing("npm");

beforeAll(async () => {
  if (reason !== undefined) return;
  directory = stack.use(await temporaryDirectory());
  backend = stack.use(await startEchoBackend());
  const config = { version: { text: "2.3.1" } };
  gate = stack.use(await startSallyport({ target: backend.url, config }));
  await directory.write("package.json", JSON.stringify({ private: true, type: "module" }));
  const quick = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const args = ["install", ...PACKAGES, "--prefix", directory.path, ...quick];
  const { code, err } = await runProgram("npm", args, "", INSTALL_MS);
  if (code !== 0) reason = `${PACKAGES.join(", ")} cannot be installed: ${err.slice(0, 200)}`;
});
afterAll(() => stack.disposeAsync());

it("logs in and reads the version", async ({ skip }) => {
  if (reason !== undefined) return skip(reason);
  const { body } = await ask({ port: gate.adminPort }, "/-/openapi");
  const description = await directory.write("openapi.json", body);
  const generator = join(directory.path, "node_modules/openapi-typescript/bin/cli.js");
  const output = join(directory.path, "api.ts");
  const generated = await runProgram(process.execPath, [
    ...[generator, description, "--output", output],
  ]);
  expect(generated).toMatchObject({ code: 0 });

  const client = await directory.write("client.ts", CLIENT);
  await directory.write("mistakes.ts", MISTAKES);
  const project = { compilerOptions: COMPILER_OPTIONS, files: ["client.ts", "mistakes.ts"] };
  const file = await directory.write("tsconfig.json", JSON.stringify(project));
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  expect(await runProgram(compiler, ["-p", file], "", 60_000)).toEqual({
    code: 0,
    out: "",
    err: "",
  });

  const authority = await directory.write("ca.pem", gate.ca ?? "");
  const ran = await runProgram("env", [
    ...[`NODE_EXTRA_CA_CERTS=${authority}`, process.execPath, client],
    ...[`https://localhost:${gate.port}`, ALICE.username, ALICE.password],
  ]);
  expect(ran).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(ran.out)).toEqual({ version: "2.3.1", status: 401, success: false });
});
