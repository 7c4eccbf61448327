export interface StartOptions {
  /** Keep all data in a temporary directory that goes with the server. The default, unless there is a `dataDir`. */
  ephemeral?: boolean;
  /** Keep the data here. */
  dataDir?: string;
  /** Default: 127.0.0.1. */
  host?: string;
  /** Default: 0, any free one. */
  port?: number;
  /** Account key in base64. Default: the well-known key of the emulator. It goes to the server by its environment. */
  key?: string;
  /** File with account keys for the server to read. `key` is then the one of them that `connectionString` has. */
  keyFile?: string;
  /** More options of `orrery serve`, for instance `["--durability", "relaxed"]`. */
  args?: string[];
  /** Variables for the server, on top of this process's without its ORRERY_ ones. */
  env?: Record<string, string>;
  /** Gets each line that the server says about what goes on. */
  onLog?: (line: string) => void;
  /** The server is killed, and start() rejects, when it does not listen after this time. Default: 30000. */
  timeoutMs?: number;
}

export interface Orrery {
  /** http. The same port speaks https, with a certificate that `/_explorer/emulator.pem` serves. */
  readonly endpoint: string;
  readonly key: string;
  readonly connectionString: string;
  readonly pid: number;
  /** Ends the server and waits for it; what is running is finished first. May be called twice. */
  stop(): Promise<void>;
  /** As stop(), for `await using`; not there on Node 18 before 18.18. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a server and waits until it listens. It does not outlive this process, however that ends, and does not keep it from
 * ending. Rejects with what the server has said when it cannot start.
 */
export function start(options?: StartOptions): Promise<Orrery>;
