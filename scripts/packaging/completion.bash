# SPDX-License-Identifier: Apache-2.0
#
# Completion of orrery for bash: subcommands, their options as --help lists them, scripts and plugins.

_orrery() {
  local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} command='' files='*' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }
  done
  COMPREPLY=()
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$("$program" $command --help 2>/dev/null | grep -Eo '^ +-[^ ]+' | tr ',' ' ')" -- "$word"))
    return
  fi
  case $command in
    '')
      COMPREPLY=($(compgen -W "$("$program" --help 2>/dev/null | sed -n '/^Subcommands:/,$s/^  \([a-z]*\)  .*/\1/p')" \
        -- "$word"))
      return
      ;;
    run | plan) [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* ]] || files='*.lua' ;;
    check) [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* ]] || files='*.so' ;;
    new)
      ((COMP_CWORD == i + 1)) && COMPREPLY=($(compgen -W "plugin editor" -- "$word"))
      [[ ${COMP_WORDS[i + 1]} == plugin ]] && ((COMP_CWORD == i + 2)) && COMPREPLY=($(compgen -W "kernel device comm strategy observer op data" -- "$word"))
      return
      ;;
  esac
  local IFS=$'\n'
  COMPREPLY=($(compgen -d -S / -- "$word") $(compgen -f -X "!$files" -- "$word"))
  [[ $files != '*' ]] || COMPREPLY=($(compgen -f -- "$word"))
  compopt -o filenames 2>/dev/null
}
complete -F _orrery orrery
