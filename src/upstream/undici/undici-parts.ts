/**
 * The parts of undici on the request path, each imported by its own file. The index of the package loads fetch, caches, mocks
 * and more, which takes 8 MB of memory and 50 ms at the start.
 */
import buildConnector from "undici/lib/core/connect.js";
import symbols from "undici/lib/core/symbols.js";
import Client from "undici/lib/dispatcher/client.js";
import Pool from "undici/lib/dispatcher/pool.js";

export { buildConnector, Client, Pool };

/** The property of a socket that holds undici's parser; undefined if undici has renamed it. */
export const { kParser } = symbols;
