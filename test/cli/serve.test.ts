import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { listeningPort } from "../support/listening-port.ts";
import { childCommand } from "./command.ts";
import { deployment } from "./deployment.ts";

it("does not start with broken files, and reports all of them at once", async () => {
  const { flags, write } = await deployment();
  await write("tls.crt", "");
  await write("users.yaml", "users: 1");
  await write("ca.crt", "");
  const { code, out, err } = await childCommand(["serve", ...flags]);
  expect({ code, out }).toEqual({ code: 78, out: "" });
  // The file, and where it is named, unless a line of the file is at fault. A flag names the first.
  const named = ["tls.crt", "users.yaml", "ca.crt", "config.yaml"];
  expect(err.match(/\w+\.(?:crt|yaml)(?=:)/g)).toEqual(named);
  expect(err).toContain("flag server.tls.certFile: server.tls.certFile\n");
});

it("does not start on a Node whose parser it does not know", async () => {
  const { flags } = await deployment();
  const other = `import { createServer } from "node:http";
import { Duplex } from "node:stream";
const connection = new Duplex({ read() {} });
createServer().emit("connection", connection);
delete connection.parser.constructor.prototype.finish;`;
  const { code, out, err } = await childCommand(["serve", ...flags], {
    env: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(other)}`,
    },
  });
  expect({ code, out }).toEqual({ code: 78, out: "" });
  expect(err.split("\n")[0]).toContain("has a different HTTP parser");
});

it("ends with a single line if the port is taken", async () => {
  const { flags } = await deployment();
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const address = `127.0.0.1:${listeningPort(taken)}`;
  const listen = ["--set", `server.listen=${address}`, "--set", "admin.listen=127.0.0.1:0"];
  const { code, err } = await childCommand(["serve", ...flags, ...listen]);
  expect(code).toBe(1);
  expect(err).toMatch(/^sallyport serve: [^\n]+\n$/);
  expect(err).toContain(address);
});
