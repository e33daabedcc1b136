import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** Idle connections stay open: a server that goes on after a while would close them before it reads what has arrived. */
const SERVER = `require("node:http")
  .createServer({ keepAliveTimeout: 600_000 }, (request, response) => request.resume().on("end", () => response.end("ok")))
  .listen(Number(process.argv[1]), "127.0.0.1", function () { console.log(this.address().port); });`;

/** A backend as a process of its own, which can be stopped, killed, and started again at the same address. */
export interface BackendProcess extends AsyncDisposable {
  readonly url: string;
  /** Suspends it: the system still accepts connections for it. */
  stop(): void;
  goOn(): void;
  kill(): Promise<void>;
  start(): Promise<void>;
}

export async function startBackendProcess(): Promise<BackendProcess> {
  let child: ChildProcess | undefined;
  const startAt = async (port: number): Promise<number> => {
    child = spawn(process.execPath, ["-e", SERVER, String(port)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout ?? child, "data")) as [Buffer];
    return Number(String(line));
  };
  const kill = async (): Promise<void> => {
    if (child === undefined) return;
    child.kill("SIGKILL");
    await once(child, "close");
    child = undefined;
  };
  const port = await startAt(0);
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => void child?.kill("SIGSTOP"),
    goOn: () => void child?.kill("SIGCONT"),
    kill,
    start: async () => void (await startAt(port)),
    [Symbol.asyncDispose]: kill,
  };
}
