// A connection to the server that can be cut and mended.

import { createServer, connect } from "node:net";

export class Cable {
  #sockets = new Set();
  #isCut = false;

  static async to(endpoint) {
    const cable = new Cable();
    const { hostname, port } = new URL(endpoint);
    cable.server = createServer((near) => {
      if (cable.#isCut) {
        near.destroy();
        return;
      }
      const far = connect(Number(port), hostname);
      for (const [from, to] of [[near, far], [far, near]]) {
        cable.#sockets.add(from);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          cable.#sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
    await new Promise((resolve) => cable.server.listen(0, "127.0.0.1", resolve));
    cable.endpoint = `http://127.0.0.1:${cable.server.address().port}/`;
    return cable;
  }
  cut() {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }
  mend() {
    this.#isCut = false;
  }
  close() {
    this.cut();
    return new Promise((resolve) => this.server.close(resolve));
  }
}
