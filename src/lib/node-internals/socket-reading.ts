import type { Socket } from "node:net";

/** The handle of a socket, as Node's streams use it. */
interface Handle {
  reading: boolean;
  readStart(): unknown;
  readStop(): unknown;
}

/**
 * Stops libuv at once from delivering data of a connection, including the rest of the current read and what its poll
 * has already reported. `Socket.pause()` does less: the stream keeps reading until its buffer is full.
 *
 * @returns whether the connection was being read.
 */
export function stopReading(socket: Socket): boolean {
  const handle = handleOf(socket);
  if (handle?.reading !== true) return false;
  handle.reading = false;
  handle.readStop();
  return true;
}

/** Undoes `stopReading`. If the stream has been paused since, reading starts when it resumes. */
export function startReading(socket: Socket): void {
  // A stream with a listener for `readable` always reports that it is paused.
  if (socket.isPaused() && socket.listenerCount("readable") === 0) {
    socket.once("resume", () => startReading(socket));
    return;
  }
  const handle = handleOf(socket);
  if (handle === undefined || handle.reading) return;
  handle.reading = true;
  handle.readStart();
}

function handleOf(socket: Socket): Handle | undefined {
  const handle: unknown = "_handle" in socket ? socket._handle : undefined;
  return isHandle(handle) ? handle : undefined;
}

function isHandle(handle: unknown): handle is Handle {
  return (
    typeof handle === "object" && handle !== null && "readStop" in handle && "readStart" in handle
  );
}
