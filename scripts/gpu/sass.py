"""Reads machine code as cuobjdump -sass prints it: finds loops, divisions and loads that overlap."""

import dataclasses
import re

FUNCTION = re.compile(r"Function : (\S+)")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);",
                         re.MULTILINE)
ADDRESS = re.compile(r"0x([0-9a-f]+)\s*$")
REGISTER = re.compile(r"\bR(\d+)\b")
LOADS, STORES = ("LDG", "LD."), ("STG", "ST.")  # to and from global memory
WIDTHS = {"128": 16, "64": 8}  # part of an access's name: its bytes; otherwise at most 4


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str
    name: str
    operands: str

    def starts(self, *names):
        return self.name.startswith(names)

    @property
    def width(self):
        """The bytes that one thread loads or stores; 4 if they are fewer."""
        return next((n for part, n in WIDTHS.items() if part in self.name.split(".")), 4)

    @property
    def packs(self):
        """Whether it rounds two numbers to 16 bits. One of two is RZ where it rounds only one."""
        return (self.starts("F2FP") and "PACK_AB" in self.name
                and not re.search(r"\bRZ\b", self.operands))

    @property
    def target(self):
        """The address that it jumps to, or None."""
        found = ADDRESS.search(self.operands)
        return int(found[1], 16) if found else None


@dataclasses.dataclass
class Counts:
    instructions: int = 0
    loads: int = 0            # from global memory, before the first store
    divisions: int = 0
    local: int = 0            # accesses to local memory
    registers: int | None = None  # None: unknown
    inner_divisions: int = 0  # in one innermost loop
    overlap: int = 0          # loads in flight at once in the main loop; see main_loop()
    wide: dict = dataclasses.field(default_factory=dict)  # {bytes: its accesses of that width}
    packed: int = 0           # its instructions that round two numbers to 16 bits at once


def functions(text):
    """Returns {mangled name: its instructions}."""
    parts = FUNCTION.split(text)[1:]
    return {name: [Instruction(int(address, 16), predicate, operation, operands)
                   for address, predicate, operation, operands in INSTRUCTION.findall(part)]
            for name, part in zip(parts[::2], parts[1::2])}


def successors(code):
    """Returns, for each instruction, the indices of the instructions that may follow it. A call is
    followed by its routine and by the next instruction, so RET has no successor."""
    index = {line.address: i for i, line in enumerate(code)}
    joins = {}  # barrier: where its threads join
    for line in code:
        if line.starts("BSSY"):
            joins.setdefault(line.operands.split(",")[0].strip(), []).append(line.target)
    found = []
    for i, line in enumerate(code):
        following = [i + 1] if i + 1 < len(code) else []
        if line.starts("EXIT", "RET"):
            found.append(following if line.predicate else [])
        elif line.starts("BRA", "CALL"):
            may_pass = line.predicate or "," in line.operands or line.starts("CALL")
            target = [index[line.target]] if line.target in index else []
            found.append(target + (following if may_pass else []))
        elif line.starts("BSYNC"):
            targets = joins.get(line.operands.strip(), [])
            passes = not targets or following and code[i + 1].address in targets
            found.append(following if passes else [index[t] for t in targets if t in index])
        else:
            found.append(following)
    return found


def components(nodes, after):
    """Returns the sets of instructions that reach each other (Tarjan's algorithm, iterative)."""
    number, low, stack, found = {}, {}, [], []
    for root in sorted(nodes):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        work = [(root, iter(after[root]))]
        while work:
            node, rest = work[-1]
            new = next((m for m in rest if m in nodes and not visit(node, m, number, low)), None)
            if new is not None:
                number[new] = low[new] = len(number)
                stack.append(new)
                work.append((new, iter(after[new])))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == number[node]:
                at = stack.index(node)
                part, stack[at:] = set(stack[at:]), []
                low.update(dict.fromkeys(part, float("inf")))  # later nodes do not reach these
                if len(part) > 1 or node in after[node]:
                    found.append(part)
    return found


def visit(node, other, number, low):
    """Returns whether `other` was found before, and if so updates low[node] from it."""
    if other in number:
        low[node] = min(low[node], number[other] if low[other] != float("inf") else low[node])
        return True
    return False


def nested_loops(nodes, after):
    """Returns all loops as pairs (sorted list of instructions, whether it is an innermost one)."""
    found = []
    for part in components(nodes, after):
        entries = {m for n in nodes - part for m in after[n] if m in part}
        inner = nested_loops(part - {min(entries or part)}, after)
        found += [*inner, (sorted(part), not inner)]
    return found


def innermost_loops(nodes, after):
    """Returns the innermost loops, as sorted lists of instructions."""
    return [loop for loop, innermost in nested_loops(nodes, after) if innermost]


def divisions(code):
    """Returns the indices of reciprocals, and of calls of routines that compute one."""
    index = {line.address: i for i, line in enumerate(code)}
    found = set()
    for i, line in enumerate(code):
        if line.starts("MUFU.RCP"):
            found.add(i)
        elif line.starts("CALL") and line.target in index:
            first = index[line.target]
            end = next((j for j in range(first, len(code)) if code[j].starts("RET")), first)
            # A call that only skips one instruction is a jump.
            if first > i + 2 and any(code[j].starts("MUFU.RCP") for j in range(first, end)):
                found.add(i)
    return found


def overlap(lines):
    """Returns the largest number of global loads in flight, i.e. whose results are not yet used."""
    waiting, most = {}, 0  # register: the load that fills it
    for line in lines:
        registers = [int(r) for r in REGISTER.findall(line.operands)]
        used = {waiting[r] for r in registers if r in waiting}
        waiting = {r: load for r, load in waiting.items() if load not in used}
        if line.starts(*LOADS) and registers:
            filled = range(registers[0], registers[0] + line.width // 4)
            waiting.update(dict.fromkeys(filled, line.address))
            most = max(most, len(set(waiting.values())))
    return most


def main_loop(code, loops):
    """Returns the instructions of the loop that should process most elements, where `loops` is what
    nested_loops() returns: the one with the most loads of 8 bytes or more. Other loops process
    elements that are not aligned, or the last ones. Of equal loops it is an innermost one, then the
    one that loads most bytes. Without a loop that loads, returns `code`."""
    def rank(loop):
        lines, innermost = loop
        widths = [line.width for line in lines if line.starts(*LOADS)]
        return sum(width >= 8 for width in widths), innermost, sum(widths)

    loading = [([code[i] for i in loop], innermost) for loop, innermost in loops]
    return max((loop for loop in loading if any(line.starts(*LOADS) for line in loop[0])),
               key=rank, default=(code, True))[0]


def count(code):
    """Returns the Counts of one kernel, without its registers."""
    loops = nested_loops(set(range(len(code))), successors(code))
    main = main_loop(code, loops)
    divided = divisions(code)
    first_store = next((i for i, line in enumerate(code) if line.starts(*STORES)), len(code))
    return Counts(
        instructions=sum(line.name != "NOP" for line in code),
        loads=sum(line.starts(*LOADS) for line in code[:first_store]),
        divisions=len(divided),
        local=sum(line.starts("LDL", "STL") for line in code),
        inner_divisions=max((len(divided.intersection(loop)) for loop, innermost in loops
                             if innermost), default=0),
        overlap=overlap(main),
        wide={width: sum(line.starts(*LOADS, *STORES) and line.width == width for line in main)
              for width in WIDTHS.values()},
        packed=sum(line.packs for line in main))
