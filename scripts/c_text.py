"""Text as C string literals, for data that the build embeds into the executable."""


def c_literal(data, indent="        "):
    """Lines of literals. Octal escapes need no terminator; escaped question marks prevent trigraphs."""
    lines = []
    for at in range(0, len(data), 100):
        part = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in data[at:at + 100])
        lines.append(f'{indent}"{part}"')
    return "\n".join(lines)
