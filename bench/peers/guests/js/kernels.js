// What is measured, in JavaScript. Every function does a fixed amount of work and
// returns 0 if the result is the right one. An interpreter runs it, so there is
// less of the arithmetic than in the other languages.

function take(n) {
	return n < 2 ? n : take(n - 1) + take(n - 2);
}

function fib() {
	return take(20) === 6765 ? 0 : 1;
}

function sieve() {
	const size = 20000;
	const composite = new Uint8Array(size);
	let count = 0;
	for (let i = 2; i < size; i++) {
		if (composite[i]) continue;
		count++;
		for (let j = i * 2; j < size; j += i) composite[j] = 1;
	}
	return count === 2262 ? 0 : 1;
}

// The texts to work on are made at the first use: a trivial call has none of it.
let text = "";

function makeText() {
	const records = [];
	for (let i = 0; i < 100; i++) {
		records.push({ id: i, name: `record number ${i}`, tags: ["red", "green", "blue"], point: [i + 0.5, i * 2 + 0.25], open: i % 2 === 0 });
	}
	text = JSON.stringify(records);
}

function json() {
	if (text === "") makeText();
	const all = JSON.parse(text);
	let total = 0;
	for (const r of all) total += r.id;
	return total === 4950 && JSON.stringify(all) === text ? 0 : 1;
}

let prose = "";

function makeProse() {
	for (let i = 0; i < 200; i++) {
		prose += i % 3 === 0 ? `line ${i} was written by user.${i}@example.org last week\n` : `line ${i} has nobody to write to, only some words\n`;
	}
}

function regexp() {
	if (prose === "") makeProse();
	return prose.match(/[a-z0-9.]+@[a-z0-9]+\.(org|com)/g).length === 67 ? 0 : 1;
}

const small = '{"name":"weather","n":42,"tags":["a","b"],"x":{"city":"Berlin","k":1.5}}';

function echo() {
	return JSON.stringify({ echo: JSON.parse(small) }).length === small.length + 9 ? 0 : 1;
}
