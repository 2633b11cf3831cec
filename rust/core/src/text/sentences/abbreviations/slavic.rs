//! Polish, Czech, Slovak, Croatian, Serbian, Russian and Ukrainian.

use super::Words;

pub(super) const POLISH: Words = Words {
    always: "
        dr prof hab mgr inż lek red płk ppłk gen kpt por ppor mjr sierż ks bp abp kard św śp o.o
        np m.in tzn tj tzw zob por. ul al pl os im pn pt dot wg ww
    ",
    before_name: "st pw n.p.m",
    before_lower: "
        itd itp r rr w ww. godz min sek tys mln mld zł gr str s nr n.e p.n.e ok ca tel kom woj pow
        gm m.st wyd t tab rys ryc art ust pkt poz rozdz tłum jw br ub bm cd cdn dn lp max min. jęz
        ang niem łac franc ros pol dawn daw in inn etc
    ",
    starters: "
        on ona ono oni one ja ty my wy to ten ta te ci ale i a lub oraz więc bo gdy kiedy jeśli jeżeli
        jak co kto gdzie dlaczego czy potem wtedy teraz dziś dzisiaj wczoraj jutro tu tam w na po
        przed z od do nie tak już jednak też także
    ",
    months: "",
};

pub(super) const CZECH: Words = Words {
    always: "
        mudr judr phdr rndr mgr ing bc doc prof dr paní p tzv např tj mj resp sv g gosp gđa ul
    ",
    before_name: "st ml ul nám",
    before_lower: "
        atd apod aj č čís str s r roč sv. kap obr tab tis mil mld kč hod min stol n.l př.n.l př o.s
        itd i.t.d npr tzv god br str. st vlč
    ",
    starters: "
        on ona ono oni my vy já ty to ten ta ale a nebo když protože jak co kdo kde proč pak potom
        teď dnes včera zítra v na po před z od do ne ano
    ",
    months: "
        ledna února března dubna května června července srpna září října listopadu prosince
        januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra
        siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga
        prosinca
    ",
};

pub(super) const RUSSIAN: Words = Words {
    always: "
        проф акад доц г-н г-жа гр тов св им ул пер пл просп наб пос дер с.-х т.е т.к т.н т.о
        напр см ср ген полк подполк кап лейт ст.лейт мл.лейт пан пані вул напр.
    ",
    before_name: "г д о стр корп пр р оз обл р-н кв",
    before_lower: "
        т.д т.п др пр гг в вв н.э до.н.э тыс млн млрд трлн руб коп долл стр с гл рис табл
        илл прим изд ред перев пер. авт кв кг км см мм м л мин сек ч час эт тел факс доб
        янв фев февр мар апр авг сен сент окт ноя нояб дек пн вт чт пт сб вс англ нем
        франц лат греч рус укр итал исп яп кит букв ок макс мин. прибл соотв включ искл
        т т.н.з u.a грн р-ні п пп ст ч.ч ед мн букв. разг устар
    ",
    starters: "
        он она оно они я ты мы вы это этот эта эти тот та те мой моя его её ее их наш наша но а и или
        да нет не если когда как что кто где почему зачем потом затем тогда теперь сейчас сегодня
        вчера завтра здесь тут там в во на по после до перед с со из от для у о об при за к также
        однако поэтому уже ещё еще все всё так вот
        він вона воно вони ми ви це цей ця ці але й або якщо коли що хто де чому потім тепер сьогодні
    ",
    months: "",
};
