"""Properties of a random program's variables, for the writer: shapes, dtypes, shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from plugrad.testing.random_programs.program import Program, Statement

Shape = tuple[int, ...]


@dataclass
class Variable:
    """The properties of a tensor that are known before the program runs.

    Attributes:
        inference: whether it was made in inference mode; a guess.
        node: whether the gradients around its grad_fn are the same in all libraries.
        memory: the same number for tensors that may share memory.
        contiguous: whether the elements are certainly contiguous.
        needs_grad: a guess; choices are better when it is right, and valid when it is wrong.
        view: whether it is a view; a guess.
    """

    name: str
    shape: Shape
    dtype: str
    memory: int
    contiguous: bool = True
    needs_grad: bool = False
    view: bool = False
    device: int = 0
    node: bool = True
    inference: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def is_integer(self) -> bool:
        return self.dtype.startswith(("int", "bool"))


@dataclass
class Draft:
    """A program that is being written.

    Attributes:
        variables: all tensors so far, the newest last.
        handles: of hooks.
        several_roots: passes begin at several tensors. PyTorch's multi-grad hooks do not count the
            only root of a pass.
    """

    variables: list[Variable] = field(default_factory=list)
    handles: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    count: int = 0
    several_roots: bool = False

    def fresh(self) -> int:
        """A number that no variable, hook or block of memory has yet."""
        self.count += 1
        return self.count

    def add(self, text: str, uses: list[str], defines: list[str] | None = None) -> None:
        self.statements.append(Statement(text, tuple(dict.fromkeys(uses)), tuple(defines or ())))

    def define(
        self,
        expression: str,
        operands: list[Variable],
        shapes: list[Shape],
        *,
        dtype: str | list[str] | None = None,
        view: bool = False,
        contiguous: bool = False,
        needs_grad: bool | None = None,
        prefix: str = "v",
        mode: str = "",
        several: bool = False,
    ) -> list[Variable]:
        """Bind the results of an expression to new variables.

        Args:
            view: the results share memory with the first operand.
            several: the expression gives a tuple, even if it is of one.
        """
        made = []
        for i, shape in enumerate(shapes):
            number = self.fresh()
            if dtype is None:
                kind = operands[0].dtype
            else:
                kind = dtype if isinstance(dtype, str) else dtype[i]
            flag = any(v.needs_grad for v in operands) if needs_grad is None else needs_grad
            made.append(
                Variable(
                    f"{prefix}{number}",
                    shape,
                    kind,
                    operands[0].memory if view else number,
                    contiguous,
                    flag and not kind.startswith(("int", "bool")),
                    view,
                    operands[0].device,
                    inference="inference" in mode or (view and operands[0].inference),
                )
            )
        names = [variable.name for variable in made]
        left = ", ".join(names) + ("," if several and len(names) == 1 else "")
        text = f"{left} = {expression}"
        self.add(f"{mode} {text}" if mode else text, [v.name for v in operands], names)
        self.variables.extend(made)
        return made

    def program(self) -> Program:
        return Program(tuple(self.statements))
