package wasmbintest

// LimitExport is an i32 of a grown module. Each call and each turn of a loop takes
// one from it, and traps when there is none.
const LimitExport = "limit"

// Grow makes a module that is valid of any bytes, which decide what is in it:
// control, calls, traps, and all that works on memory, tables, globals and segments,
// also where it is never reached. Numbers are integers, so that there are no NaNs to
// differ in. All functions, the memory and the globals are exported; what it imports
// is of a module "env".
func Grow(choices []byte) []byte {
	g := &grower{in: choices}
	g.imports, g.functions = g.pick(3), 1+g.pick(5)
	var imports, declared, bodies, exports [][]byte
	for i := range g.imports {
		imports = append(imports, Join(Name("env"), Name(string(rune('a'+i))), Hex("00"), Uint(g.sign())))
	}
	for range g.functions {
		declared = append(declared, Uint(g.sign()))
	}
	for i := range g.functions {
		bodies = append(bodies, g.function(g.signs[g.imports+i]))
		exports = append(exports, Join(Name(string(rune('f'+i))), Hex("00"), Uint(g.imports+i)))
	}
	for i, name := range []string{LimitExport, "x", "y"} {
		exports = append(exports, Join(Name(name), Hex("03"), Uint(i)))
	}
	exports = append(exports, Join(Name("memory"), Hex("0200")))
	return Module(Section(1, Vector(signatureTypes()...)), Section(2, Vector(imports...)), Section(3, Vector(declared...)),
		Section(4, Hex("02 70 01 06 0c 70 01 02 05")), Section(5, Hex("01 01 01 03")),
		Section(6, Hex("03 7f 01 41e400 0b 7f 01 4107 0b 7e 01 427f 0b")), Section(7, Vector(exports...)),
		g.start(), g.elements(), Section(12, Hex("04")), Section(10, Vector(bodies...)), g.data())
}

// signature is a type of functions, and of blocks.
type signature struct{ params, results string } // of bytes that are types

const (
	i32 = "\x7f"
	i64 = "\x7e"
)

// signatures are all types there are. Each is its own index, and the first is that of
// what starts.
func signatures() []signature {
	return []signature{{"", ""}, {i32, i32}, {i64 + i32, i64}, {"", i32 + i64}, {i32, ""}, {i32 + i32, i32 + i32}, {"", i64}, {"", i32}}
}

func signatureTypes() (all [][]byte) {
	for _, s := range signatures() {
		all = append(all, Join(Hex("60"), Name(s.params), Name(s.results)))
	}
	return all
}

// grower makes a module.
type grower struct {
	in                 []byte
	code               []byte
	imports, functions int
	signs              []int // of each function
	results            string
	locals             string   // types
	labels             []string // what a branch to each block passes, the outermost first
}

// pick chooses one of n, the first when there is nothing left to decide by.
func (g *grower) pick(n int) int {
	if len(g.in) == 0 {
		return 0
	}
	b := g.in[0]
	g.in = g.in[1:]
	return int(b) % n
}

func (g *grower) sign() int {
	s := g.pick(len(signatures()))
	g.signs = append(g.signs, s)
	return s
}

func (g *grower) start() []byte {
	for i, s := range g.signs {
		if s == 0 && i >= g.imports && g.pick(4) == 1 {
			return Section(8, Uint(i))
		}
	}
	return nil
}

// elements are an active segment, a passive one, and one by expressions that declares
// all functions.
func (g *grower) elements() []byte {
	n := g.imports + g.functions
	list := Uint(5)
	for range 5 {
		list = append(list, byte(g.pick(n)))
	}
	all := Uint(n)
	for i := range n {
		all = append(all, 0xd2, byte(i), 0x0b)
	}
	return Section(9, Uint(3), Hex("00 41"), Int(g.pick(2)), Hex("0b"), list, Hex("01 00"), list, Hex("07 70"), all)
}

// data are active segments, in order or over each other, one that may be passive, and
// one that may be past the end of memory.
func (g *grower) data() []byte {
	const end = 65536
	at := 0
	active := func(text string) []byte {
		start := at + g.pick(5)
		at = start + len(text) - g.pick(2)
		return Join(Hex("00 41"), Int(start), Hex("0b"), Name(text))
	}
	first, second, middle := active("abcd"), active("efgh"), Join(Hex("01"), Name("passive"))
	if g.pick(2) == 0 {
		middle = active("passive")
	}
	at = end - 9 + g.pick(6)
	return Section(11, Vector(first, second, middle, active("z")))
}

func (g *grower) emit(digits string) { g.code = append(g.code, Hex(digits)...) }

func (g *grower) number(opcode string, n int) {
	g.code = append(append(g.code, Hex(opcode)...), Uint(n)...)
}

// function is the code of one, which first takes from the limit.
func (g *grower) function(sign int) []byte {
	s := signatures()[sign]
	g.code, g.results, g.locals, g.labels = nil, s.results, s.params+i32+i32+i64, []string{s.results}
	g.limit()
	g.statements(4)
	for _, t := range s.results {
		g.value(byte(t), 4)
	}
	return Func(Hex("02 02 7f 01 7e"), g.code)
}

// limit takes one from the limit, and traps if there is none.
func (g *grower) limit() { g.emit("2300 45 0440 00 0b 2300 4101 6b 2400") }

func (g *grower) statements(depth int) {
	for range 1 + g.pick(4) {
		g.statement(depth - 1)
	}
}

func (g *grower) statement(depth int) {
	simple := []func(int){
		func(int) {}, g.setLocal, g.setGlobal, g.store, g.callDropped, g.bulkMemory, g.bulkTable, g.drops, g.grows,
		g.branch, g.branchIf, g.branchTable, g.returns, g.traps,
	}
	nested := []func(int){g.block, g.loop, g.loop, g.conditional}
	n := len(simple)
	if depth > 0 {
		n += 2 * len(nested)
	}
	if i := g.pick(n); i < len(simple) {
		simple[i](depth)
	} else {
		nested[(i-len(simple))%len(nested)](depth)
	}
}

func (g *grower) local(t byte) int {
	for i, n := 0, g.pick(len(g.locals)); ; i++ {
		if at := (n + i) % len(g.locals); g.locals[at] == t {
			return at
		}
	}
}

func (g *grower) setLocal(depth int) {
	at := g.pick(len(g.locals))
	g.value(g.locals[at], depth)
	g.number("21", at)
}

func (g *grower) setGlobal(depth int) {
	if g.pick(2) == 0 {
		g.value(i32[0], depth)
		g.emit("2401")
		return
	}
	g.value(i64[0], depth)
	g.emit("2402")
}

// address leaves one that is within the memory, most times.
func (g *grower) address(depth int) {
	g.value(i32[0], depth)
	if g.pick(8) != 1 {
		g.emit("41ffff00 71")
	}
}

func (g *grower) length(depth int) {
	g.value(i32[0], depth)
	if g.pick(8) != 1 {
		g.emit("41ff01 71")
	}
}

func (g *grower) store(depth int) {
	g.address(depth)
	if g.pick(2) == 0 {
		g.value(i32[0], depth)
		g.emit("360204")
		return
	}
	g.value(i64[0], depth)
	g.emit("370300")
}

func (g *grower) bulkMemory(depth int) {
	g.address(depth)
	switch g.pick(4) {
	case 0:
		g.address(depth)
		g.length(depth)
		g.emit("fc0a0000")
	case 1:
		g.value(i32[0], depth)
		g.length(depth)
		g.emit("fc0b00")
	case 2:
		g.small(depth)
		g.small(depth)
		g.emit("fc080200")
	case 3:
		g.small(depth)
		g.small(depth)
		g.number("fc08", g.pick(4))
		g.emit("00")
	}
}

// small leaves a number below 8.
func (g *grower) small(depth int) {
	g.value(i32[0], depth)
	g.emit("4107 71")
}

func (g *grower) reference() {
	if n := g.pick(g.imports + g.functions + 1); n > 0 {
		g.number("d2", n-1)
	} else {
		g.emit("d070")
	}
}

func (g *grower) bulkTable(depth int) {
	table := g.pick(2)
	g.small(depth)
	switch g.pick(5) {
	case 0:
		g.reference()
		g.number("26", table)
	case 1:
		g.number("25", table)
		g.emit("1a")
	case 2:
		g.reference()
		g.small(depth)
		g.number("fc11", table)
	case 3:
		g.small(depth)
		g.small(depth)
		g.number("fc0e", table)
		g.number("", g.pick(2))
	case 4:
		g.small(depth)
		g.small(depth)
		g.number("fc0c", g.pick(3))
		g.number("", table)
	}
}

func (g *grower) drops(int) {
	if n := g.pick(7); n < 4 {
		g.number("fc09", n)
	} else {
		g.number("fc0d", n-4)
	}
}

func (g *grower) grows(depth int) {
	if table := g.pick(3); table < 2 {
		g.reference()
		g.value(i32[0], depth)
		g.number("fc0f", table)
	} else {
		g.value(i32[0], depth)
		g.emit("4000")
	}
	g.emit("1a")
}

func (g *grower) values(types string, depth int) {
	for _, t := range []byte(types) {
		g.value(t, depth)
	}
}

// dead is code that is never reached, where the operands may be anything.
func (g *grower) dead() {
	dead := []string{"", "1a", "6a 1a", "0240 0b", "0f", "2100 01", "00", "0340 0b", "0440 05 0b"}
	if n := g.pick(len(dead)); n != 5 || g.locals[0] == i32[0] || g.locals[0] == i64[0] {
		g.emit(dead[n])
	}
}

// label chooses a block to branch to, and takes from the limit, as it may be a loop.
func (g *grower) label() (label int, passes string) {
	label = g.pick(len(g.labels))
	g.limit()
	return label, g.labels[len(g.labels)-1-label]
}

func (g *grower) branch(depth int) {
	label, passes := g.label()
	g.values(passes, depth)
	g.number("0c", label)
	g.dead()
}

func (g *grower) branchIf(depth int) {
	label, passes := g.label()
	g.values(passes, depth)
	g.value(i32[0], depth)
	g.number("0d", label)
	for range passes {
		g.emit("1a")
	}
}

func (g *grower) branchTable(depth int) {
	label, passes := g.label()
	g.values(passes, depth)
	g.small(depth)
	var targets []byte
	n := 0
	for i := range g.labels {
		if g.labels[len(g.labels)-1-i] == passes {
			targets = append(targets, Uint(i)...)
			n++
		}
	}
	g.number("0e", n)
	g.code = append(g.code, targets...)
	g.number("", label)
	g.dead()
}

func (g *grower) returns(depth int) {
	g.values(g.results, depth)
	g.emit("0f")
	g.dead()
}

func (g *grower) traps(int) {
	if g.pick(4) == 1 {
		g.emit("00")
		g.dead()
	}
}

// open begins a block of a type, of which label is what branches to it pass.
func (g *grower) open(opcode string, sign int, label string) {
	g.emit(opcode)
	s := signatures()[sign]
	switch {
	case s.params == "" && s.results == "":
		g.emit("40")
	case s.params == "" && len(s.results) == 1:
		g.code = append(g.code, s.results[0])
	default:
		g.number("", sign)
	}
	g.labels = append(g.labels, label)
	for range s.params {
		g.emit("1a")
	}
}

func (g *grower) close() {
	g.emit("0b")
	g.labels = g.labels[:len(g.labels)-1]
}

// nest is a block of any kind and type, with all it leaves.
func (g *grower) nest(opcode string, sign, depth int) {
	s := signatures()[sign]
	g.values(s.params, depth)
	label := s.results
	if opcode == "03" {
		label = s.params
	}
	if opcode == "04" {
		g.value(i32[0], depth)
	}
	g.open(opcode, sign, label)
	g.statements(depth)
	g.values(s.results, depth)
	if opcode == "04" && (s.params != s.results || g.pick(2) == 1) {
		g.emit("05")
		for range s.params {
			g.emit("1a")
		}
		g.statements(depth)
		g.values(s.results, depth)
	}
	g.close()
}

func (g *grower) dropped(opcode string, depth int) {
	sign := g.pick(len(signatures()))
	g.nest(opcode, sign, depth)
	for range signatures()[sign].results {
		g.emit("1a")
	}
}

func (g *grower) block(depth int) { g.dropped("02", depth) }

func (g *grower) conditional(depth int) { g.dropped("04", depth) }

// loop goes around while a local is not zero, or as branches in it will.
func (g *grower) loop(depth int) {
	if g.pick(2) == 0 {
		g.dropped("03", depth)
		return
	}
	counter := g.local(i32[0])
	g.emit("0340")
	g.labels = append(g.labels, "")
	g.limit()
	g.statements(depth)
	g.number("20", counter)
	g.emit("4101 6b 4107 71")
	g.number("22", counter)
	g.emit("0d00")
	g.close()
}

// called calls any function, directly or by a table, and returns what it leaves.
func (g *grower) called(depth int) (results string) {
	if g.pick(3) == 0 {
		sign, table := g.pick(len(signatures())), g.pick(2)
		s := signatures()[sign]
		g.values(s.params, depth)
		g.small(depth)
		g.number("11", sign)
		g.number("", table)
		return s.results
	}
	f := g.pick(len(g.signs))
	s := signatures()[g.signs[f]]
	g.values(s.params, depth)
	g.number("10", f)
	return s.results
}

func (g *grower) callDropped(depth int) {
	for range g.called(depth - 1) {
		g.emit("1a")
	}
}

// value leaves one of type t.
func (g *grower) value(t byte, depth int) {
	if depth <= 0 {
		g.leaf(t)
		return
	}
	depth--
	switch g.pick(7) {
	case 0:
		g.leaf(t)
	case 1, 2:
		g.binary(t, depth)
	case 3:
		g.nest([]string{"02", "03", "04"}[g.pick(3)], g.signOf(t), depth)
	case 4:
		g.value(t, depth)
		g.value(t, depth)
		g.value(i32[0], depth)
		g.emit("1b")
	case 5:
		g.address(depth)
		g.emit(map[byte]string{i32[0]: "280200", i64[0]: "290304"}[t])
	case 6:
		g.converted(t, depth)
	}
}

// signOf is the type of blocks that leave one value of type t.
func (g *grower) signOf(t byte) int {
	if t == i64[0] {
		return []int{6, 2}[g.pick(2)]
	}
	return []int{7, 1}[g.pick(2)]
}

func (g *grower) leaf(t byte) {
	switch g.pick(4) {
	case 1:
		g.number("20", g.local(t))
	case 2:
		g.emit(map[byte]string{i32[0]: "2301", i64[0]: "2302"}[t])
	case 3:
		g.emit(map[byte]string{i32[0]: "3f00", i64[0]: "427f"}[t])
	default:
		g.emit(map[byte]string{i32[0]: "41", i64[0]: "42"}[t])
		g.code = append(g.code, Int(g.pick(256)-64)...)
	}
}

// binary is of two values of the type: all there are, with those that trap.
func (g *grower) binary(t byte, depth int) {
	g.value(t, depth)
	g.value(t, depth)
	first := byte(0x6a)
	if t == i64[0] {
		first = 0x7c
	}
	g.code = append(g.code, first+byte(g.pick(15)))
}

// converted is a value that was of another type, or of a call.
func (g *grower) converted(t byte, depth int) {
	if g.pick(2) == 0 {
		results := g.called(depth)
		for range results {
			g.emit("1a")
		}
		g.leaf(t)
		return
	}
	if t == i64[0] {
		g.value(i32[0], depth)
		g.emit([]string{"ac", "ad"}[g.pick(2)])
		return
	}
	g.value(i64[0], depth)
	g.emit([]string{"a7", "50"}[g.pick(2)])
}
