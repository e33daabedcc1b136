/** The thread that reads one large users file. */
import { parentPort, workerData } from "node:worker_threads";
import { ConfigError } from "../core/config-problem.ts";
import type { UsersAnswer, UsersJob } from "./users-job.ts";
import { readUsersFile } from "./users-file.ts";

const job: UsersJob = workerData;
parentPort?.postMessage(answerTo(job));

function answerTo({ bytes, file }: UsersJob): UsersAnswer {
  try {
    return { users: readUsersFile(Buffer.from(bytes.buffer), file) };
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems };
    throw error;
  }
}
