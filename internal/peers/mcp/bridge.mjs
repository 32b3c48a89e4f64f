// Joins standard input and output to a port: what a client of stdio starts.
import net from "node:net";

const socket = net.connect(Number(process.argv[2]), "127.0.0.1");
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on("close", () => process.exit(0));
