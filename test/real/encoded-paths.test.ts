/**
 * Paths that clients of the RabbitMQ management API, GitLab and npm send, built by their own rules, against a backend
 * that records them, since the real servers take minutes to start. Every byte of the path must arrive as sent.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { runProgram } from "../support/program.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

describe("behind paths: encoded", () => {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let gate: Sallyport;
  let directory: TemporaryDirectory;
  beforeAll(async () => {
    backend = stack.use(await startEchoBackend());
    directory = stack.use(await temporaryDirectory());
    gate = stack.use(
      await startSallyport({
        target: backend.url,
        config: { routes: [{ name: "all", path: "/", upstream: "app", paths: "encoded" }] },
      }),
    );
    await directory.write("ca.pem", gate.ca ?? "");
  });
  afterAll(() => stack.disposeAsync());

  const vhost = encodeURIComponent("/");
  it.each([
    ["RabbitMQ: the queues of the default virtual host", `/api/queues/${vhost}`],
    [
      "RabbitMQ: a queue with a slash and a hash",
      `/api/queues/${vhost}/${encodeURIComponent("a/b#c")}/get`,
    ],
    [
      "RabbitMQ: a binding",
      `/api/bindings/${vhost}/e/amq.topic/q/orders/${encodeURIComponent("a.*;b?")}`,
    ],
    ["RabbitMQ: permissions of a user", `/api/permissions/${vhost}/${encodeURIComponent("a@b+c")}`],
    [
      "GitLab: a project by its path",
      `/api/v4/projects/${encodeURIComponent("group/sub/project")}/issues`,
    ],
    [
      "GitLab: a file",
      `/api/v4/projects/1/repository/files/${encodeURIComponent("src/main.ts")}?ref=main`,
    ],
    ["Spring: a name with a space and an umlaut", `/orders/${encodeURIComponent("Grüße 1")}`],
  ])("%s arrives byte for byte", async (_what, path) => {
    const answer = await fetchThrough(path);
    expect(answer["url"]).toBe(path);
  });

  it("npm: a request for a scoped package arrives", async () => {
    const registry = `https://localhost:${gate.port}/`;
    const npmrc = await directory.write(
      "npmrc",
      `registry=${registry}\ncafile=${directory.path}/ca.pem\n//localhost:${gate.port}/:_authToken=${gate.token}\nfetch-retries=0\nnoproxy=localhost\ncache=${directory.path}/cache\n`,
    );
    // Without the settings that `npm run` passes to its children, which override a file.
    const env = ["-i", `PATH=${process.env["PATH"]}`, `HOME=${directory.path}`];
    const view = ["npm", "view", "@scope/name@1.0.0", "--userconfig", npmrc];
    await runProgram("env", [...env, ...view], "", 60_000);
    const asked = backend.requests.map(({ url }) => url).filter((url) => url.includes("scope"));
    // npm writes %2f; percent-encodings are normalized to upper case (RFC 3986 §6.2.2.1).
    expect(asked).toContain("/@scope%2Fname");
  });

  async function fetchThrough(path: string) {
    const { out } = await runProgram("curl", [
      ...["--silent", "--noproxy", "*", "--cacert", `${directory.path}/ca.pem`, "--path-as-is"],
      ...[
        "--header",
        `Authorization: Bearer ${gate.token}`,
        `https://localhost:${gate.port}${path}`,
      ],
    ]);
    return fieldsOf({ body: out });
  }
});
