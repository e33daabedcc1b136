/** JupyterLab behind Sallyport, as docs/recipes/jupyterlab.md says, in Debian's Chromium. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { missing, startProgram } from "../support/program.ts";
import { ALICE, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { startBrowser } from "./browser.ts";
import { signIn } from "./person.ts";
import { recipeCommand, startRecipe } from "./recipe.ts";

const reason = missing("chromium", "jupyter-lab");
const HOST = "lab.example.com";

/** Runs in the page, as JupyterLab does: starts a kernel, and has it execute code over its WebSocket. */
const RUN = (code: string): string => `(async () => {
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)[1];
  const headers = { "X-XSRFToken": xsrf, "content-type": "application/json" };
  const made = await fetch("/api/kernels", { method: "POST", headers, body: "{}" });
  if (made.status !== 201) return "kernel: " + made.status + " " + (await made.text());
  const { id } = await made.json();
  const socket = new WebSocket("wss://" + location.host + "/api/kernels/" + id + "/channels");
  window.kernel = { open: true };
  return new Promise((resolve) => {
    const header = { msg_id: "1", username: "", session: "s", msg_type: "execute_request", version: "5.3" };
    const content = { code: ${JSON.stringify(code)}, silent: false, store_history: false, allow_stdin: false };
    const message = { channel: "shell", header, parent_header: {}, metadata: {}, content, buffers: [] };
    socket.onopen = () => socket.send(JSON.stringify(message));
    socket.onmessage = ({ data }) => {
      const { msg_type, content } = JSON.parse(data);
      if (msg_type === "execute_result") resolve(content.data["text/plain"]);
    };
    socket.onclose = ({ code }) => {
      window.kernel = { open: false };
      resolve("closed: " + code);
    };
  });
})()`;

describe.skipIf(reason !== undefined)(`JupyterLab ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let gate: Sallyport;
  beforeAll(async () => {
    const directory = stack.use(await temporaryDirectory());
    const port = await freePort();
    const args = recipeCommand("jupyterlab", "jupyter lab", ["port=8888", `port=${port}`]);
    const root = ["--allow-root", `--ServerApp.root_dir=${directory.path}`];
    // Nothing of the machine's own settings counts.
    const env = [`HOME=${directory.path}`, "JUPYTER_NO_CONFIG=1"];
    const lab = stack.use(startProgram("env", [...env, "jupyter-lab", ...args.slice(1), ...root]));
    await until(() => {
      if (lab.exited()) throw new Error(lab.output());
      return ask({ port }, "/api").then(
        ({ status }) => status === 200,
        () => false,
      );
    }, 60_000);
    gate = stack.use(await startRecipe("jupyterlab", `http://127.0.0.1:${port}`, ["notebooks"]));
  });
  afterAll(() => stack.disposeAsync());

  it("a person signs in, sees JupyterLab, and runs code in a kernel until signing out", async () => {
    await using browser = await startBrowser(
      "--ignore-certificate-errors",
      `--host-resolver-rules=MAP ${HOST} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1`,
    );
    await browser.open(`https://${HOST}:${gate.port}/lab`);
    await signIn(browser, ALICE.username, ALICE.password);
    await until(
      async () => (await browser.evaluate("!!document.querySelector('.jp-Launcher')")) === true,
      60_000,
    );
    expect(await browser.evaluate(RUN("1+1"))).toBe("2");
    // Of all that JupyterLab asks for, Sallyport has refused only what came before the sign-in.
    const refused = gate
      .log()
      .filter(({ source, status }) => source === "self" && Number(status) >= 400)
      .filter(({ path, status }) => path !== "/lab" || status !== 401);
    expect(refused).toEqual([]);
    await browser.evaluate("fetch('/_sallyport/logout', { method: 'POST' })");
    await until(async () => (await browser.evaluate("window.kernel.open")) === false, 1_000);
  }, 90_000);
});
