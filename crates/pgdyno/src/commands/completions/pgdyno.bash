_pgdyno() {
    local line=${COMP_LINE:0:COMP_POINT}
    local -a words
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    local current=${words[${#words[@]} - 1]} before=
    # The part of the word that bash does not replace.
    [[ $current != *[=:]* ]] || before=${current%"${current##*[=:]}"}

    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) VARIABLE=bash "${words[0]}" -- "${words[@]}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
}
# Bash before 4.4 has no order of candidates.
complete -o bashdefault -o nosort -F _pgdyno pgdyno 2>/dev/null || complete -o bashdefault -F _pgdyno pgdyno
